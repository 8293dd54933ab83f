// The caller's name and e-mail address for commits: read_git_identity() of profile.h.

#include "base/text.h"
#include "sandbox/git_question.h"
#include "sandbox/profile.h"

namespace sallyport::sandbox {
namespace {

constexpr std::size_t kMaxAnswerBytes = 4096;

}  // namespace

GitIdentity read_git_identity(const std::string& home) {
  GitIdentity identity;
  const auto answer = ask_git(
      {.arguments = {"config", "--global", "--includes", "--null", "--get-regexp", "^user\\.(name|email)$"},
       .environment = {},
       .descriptors = {},
       .become = {},
       .home = home,
       .max_answer_bytes = kMaxAnswerBytes});
  if (!answer) return identity;
  for (const std::string_view entry : split(answer->text, '\0')) {
    const std::size_t newline = entry.find('\n');
    if (newline == std::string_view::npos) continue;
    const std::string_view key = entry.substr(0, newline);
    const std::string value(entry.substr(newline + 1));
    if (key == "user.name") identity.name = value;
    if (key == "user.email") identity.email = value;
  }
  return identity;
}

}  // namespace sallyport::sandbox
