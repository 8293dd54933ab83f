// The caller's name and e-mail address for commits: read_git_identity() of profile.h.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "base/text.h"
#include "os/spawn.h"
#include "os/unix_socket.h"
#include "sandbox/profile.h"

namespace sallyport::sandbox {
namespace {

constexpr char kGit[] = "/usr/bin/git";
constexpr std::chrono::milliseconds kGitTimeout{2'000};
constexpr std::size_t kMaxAnswerBytes = 4096;  // fits a pipe's buffer, so git need not wait for the reader

std::string ask_git(const std::string& home) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const auto child = os::spawn({
      .program = kGit,
      .argv = {"git", "config", "--global", "--includes", "--null", "--get-regexp", "^user\\.(name|email)$"},
      .environment = {"HOME=" + home, "PATH=/usr/bin:/bin", "LC_ALL=C"},
      .descriptors = {{writing.get(), 1}},
      .working_directory = "/",
  });
  writing.reset();
  if (!child) return {};
  const auto ended = os::wait_child_within(*child, kGitTimeout);
  if (!ended || !*ended) {
    static_cast<void>(os::kill_child(*child, SIGKILL));
    static_cast<void>(os::wait_child(*child));
    return {};
  }
  std::string answer(kMaxAnswerBytes, '\0');
  const ssize_t got = ::read(reading.get(), answer.data(), answer.size());
  answer.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return answer;
}

}  // namespace

GitIdentity read_git_identity(const std::string& home) {
  GitIdentity identity;
  const std::string answer = ask_git(home);
  for (const std::string_view entry : split(answer, '\0')) {
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
