#include "sandbox/git_question.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

constexpr char kGit[] = "/usr/bin/git";
// Of address space. An index of half a million files takes a twentieth of it; a hostile one ends git here.
constexpr std::uint64_t kMaxGitMemory = 4ULL * 1024 * 1024 * 1024;
constexpr int kNothingFound = 1;
constexpr int kConfigFd = 3;

// Everything until the end, or nullopt: too much, or too slow.
std::optional<std::string> read_answer(int fd, std::size_t max_bytes, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string text;
  char piece[16384];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0) return std::nullopt;
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(piece, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) return std::nullopt;
  }
}

}  // namespace

Result<GitAnswer> ask_git(const GitQuestion& question) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Reason::Internal, "pipe");
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  os::SpawnSpec spec{
      .program = kGit,
      .argv = {"git"},
      // A repository may say that what it lacks is to be fetched (a partial clone), with
      // programs that it names: no protocol is allowed, and nothing is fetched.
      .environment = {"PATH=/usr/bin:/bin", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + question.home,
                      "XDG_CONFIG_HOME=" + question.home + "/.config", "GIT_ALLOW_PROTOCOL=none",
                      "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0"},
      .descriptors = question.descriptors,
      .become = question.become,
      .max_memory = kMaxGitMemory,
      .working_directory = "/",
      .parent_death_signal = SIGKILL};
  spec.argv.insert(spec.argv.end(), question.arguments.begin(), question.arguments.end());
  spec.environment.insert(spec.environment.end(), question.environment.begin(), question.environment.end());
  spec.descriptors.push_back({writing.get(), 1});
  const auto child = os::spawn(spec);
  if (!child) return fail(Reason::Internal, "start git: " + child.error().detail);
  writing.reset();
  auto text = read_answer(reading.get(), question.max_answer_bytes, question.timeout);
  if (!text) (void)os::kill_child(*child, SIGKILL);
  const auto ended = os::wait_child(*child);
  if (!text || !ended) return fail(Reason::Internal, "git gave no answer that can be read");
  return GitAnswer{ended->shell_code(), std::move(*text)};
}

Result<GitSettings> git_settings(int file, const std::string& key_pattern,
                                 const std::optional<os::Ids>& become) {
  auto answer = ask_git({.arguments = {"config", "--file", "/proc/self/fd/" + std::to_string(kConfigFd),
                                       "--no-includes", "--null", "--get-regexp", key_pattern},
                         .environment = {},
                         .descriptors = {{file, kConfigFd}},
                         .become = become});
  if (!answer) return fail(std::move(answer));
  if (answer->code > kNothingFound) {
    return fail(Reason::BadRequest, "git cannot read that configuration");
  }
  GitSettings settings;
  for (const std::string_view entry : split(answer->text, '\0')) {
    if (entry.empty()) continue;
    // A key without "=" has no value, and no newline behind it.
    const std::size_t newline = entry.find('\n');
    settings.emplace_back(entry.substr(0, newline),
                          newline == std::string_view::npos ? "true" : entry.substr(newline + 1));
  }
  return settings;
}

}  // namespace sallyport::sandbox
