#include "os/forked_task.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

namespace sallyport::os {
namespace {

// Each with its length, since a text may hold anything: "5:texts".
std::string encoded(const std::string& text) {
  return std::to_string(text.size()) + ':' + text;
}

// As many as are whole.
ForkedTask::Texts decoded(std::string_view bytes) {
  ForkedTask::Texts texts;
  while (!bytes.empty()) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(bytes.data(), bytes.data() + bytes.size(), size);
    bytes.remove_prefix(static_cast<std::size_t>(end - bytes.data()));
    if (error != std::errc() || !bytes.starts_with(':') || bytes.size() - 1 < size) break;
    texts.emplace_back(bytes.substr(1, size));
    bytes.remove_prefix(1 + size);
  }
  return texts;
}

void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  unsigned int first = STDERR_FILENO + 1;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned int>(fd);
    if (number > first) ::close_range(first, number - 1, 0);
    first = std::max(first, number + 1);
  }
  ::close_range(first, ~0U, 0);
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) ::_exit(1);  // nobody listens
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

[[noreturn]] void be_the_copy(pid_t parent, int answer, std::vector<int> kept, const ForkedTask::Work& work) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  kept.push_back(answer);
  close_all_but(std::move(kept));
  try {
    work([answer](const std::string& text) { write_all(answer, encoded(text)); });
  } catch (...) {
    ::_exit(1);  // no handler of the parent's runs here
  }
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<ForkedTask>> ForkedTask::start(EventLoop& loop, const Work& work,
                                                      std::vector<int> kept, std::chrono::milliseconds limit,
                                                      Done done) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Reason::Internal, "pipe");
  Fd reading(ends[0]);
  Fd writing(ends[1]);
  if (::fcntl(reading.get(), F_SETFL, O_NONBLOCK) != 0) return fail_errno(Reason::Internal, "fcntl F_SETFL");
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(Reason::Internal, "fork");
  if (pid == 0) be_the_copy(parent, writing.get(), std::move(kept), work);
  auto child = known_child(pid);
  if (!child) return fail(std::move(child));
  std::unique_ptr<ForkedTask> task(
      new ForkedTask(loop, *std::move(child), std::move(reading), std::move(done)));
  task->run(limit);
  return task;
}

ForkedTask::ForkedTask(EventLoop& loop, Child child, Fd answer, Done done)
    : loop_(loop), child_(std::move(child)), answer_(std::move(answer)), done_(std::move(done)) {}

void ForkedTask::run(std::chrono::milliseconds limit) {
  loop_.watch(answer_.get(), POLLIN, [this](short) { on_readable(); });
  loop_.watch(child_.pidfd.get(), POLLIN, [this](short) { on_ended(); });
  timer_ = loop_.after(limit, [this] {
    timer_.reset();
    give_up("it took too long");
  });
}

ForkedTask::~ForkedTask() {
  if (!child_.pidfd) return;
  unwatch();
  (void)kill_child(child_, SIGKILL);
  (void)wait_child(child_);
}

// What it says is read, or it would wait for room in the pipe.
void ForkedTask::wait(std::chrono::milliseconds limit) {
  const auto deadline = EventLoop::Clock::now() + limit;
  std::array<pollfd, 2> either = {{{answer_.get(), POLLIN, 0}, {child_.pidfd.get(), POLLIN, 0}}};
  while (whole_ && either[1].revents == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - EventLoop::Clock::now());
    if (left.count() <= 0) return;
    if (::poll(either.data(), either.size(), static_cast<int>(left.count())) < 0) continue;
    if ((either[0].revents & POLLIN) != 0) {
      on_readable();
    } else if (either[0].revents != 0) {
      either[0].fd = -1;  // it has said all
    }
  }
}

void ForkedTask::on_readable() {
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t got = ::read(answer_.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return loop_.unwatch(answer_.get());
    text_.append(piece.data(), static_cast<std::size_t>(got));
    if (text_.size() > kMaxAnswerBytes) return give_up("it said too much");
  }
}

// Its end comes by the loop: it may be in the middle of a call that nothing interrupts.
void ForkedTask::give_up(const char* why) {
  if (whole_) whole_ = fail(Reason::Internal, why);
  loop_.unwatch(answer_.get());
  (void)kill_child(child_, SIGKILL);
}

void ForkedTask::on_ended() {
  if (whole_) on_readable();  // its last words
  unwatch();
  const auto status = wait_child(child_);
  child_.pidfd.reset();
  if (whole_ && (!status || !status->ok())) {
    whole_ = fail(Reason::Internal, status ? "it ended with " + status->text() : status.error().detail);
  }
  const Done done = std::move(done_);
  done(decoded(text_), std::move(whole_));
}

void ForkedTask::unwatch() {
  loop_.unwatch(answer_.get());
  loop_.unwatch(child_.pidfd.get());
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
}

}  // namespace sallyport::os
