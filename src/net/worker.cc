#include "net/worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace sallyport::net {
namespace {

namespace asio = boost::asio;

[[noreturn]] void end_process(const std::string& child, const std::exception_ptr& exception) {
  const char* what = "an unknown exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    what = e.what();
    std::fprintf(stderr, "bug: an exception left %s: %s\n", child.c_str(), what);
  } catch (...) {
    std::fprintf(stderr, "bug: an exception left %s: %s\n", child.c_str(), what);
  }
  std::abort();
}

}  // namespace

// The event loop is the last but two, so that it goes while the rest is still there: it destroys the
// children's frames, and the deadlines in them unlink themselves from the list here.
struct Worker::State {
  std::size_t children = 0;
  Deadline* first = nullptr;   // armed deadlines
  Deadline* cursor = nullptr;  // the one that a running tick looks at next
  bool ticking = false;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  asio::steady_timer timer{io};

  void link(Deadline& deadline) {
    deadline.next_ = first;
    deadline.previous_ = nullptr;
    if (first != nullptr) first->previous_ = &deadline;
    first = &deadline;
    if (!ticking) schedule_tick();
  }

  void unlink(Deadline& deadline) {
    if (cursor == &deadline) cursor = deadline.next_;
    if (first == &deadline) first = deadline.next_;
    if (deadline.previous_ != nullptr) deadline.previous_->next_ = deadline.next_;
    if (deadline.next_ != nullptr) deadline.next_->previous_ = deadline.previous_;
    deadline.next_ = deadline.previous_ = nullptr;
  }

  void schedule_tick() {
    ticking = true;
    timer.expires_after(Deadline::kTick);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (!error) tick();
    });
  }

  // A callback may set, clear and destroy any deadline: unlink() keeps the cursor right.
  void tick() {
    const auto now = Clock::now();
    cursor = first;
    while (cursor != nullptr) {
      Deadline& deadline = *cursor;
      cursor = deadline.next_;
      if (deadline.at_ > now) continue;
      deadline.clear();
      deadline.expired_ = true;
      deadline.on_expiry_();
    }
    ticking = false;
    if (first != nullptr) schedule_tick();
  }
};

Worker::Worker() : state_(std::make_unique<State>()) {}

Worker::~Worker() = default;

asio::io_context& Worker::io() {
  return state_->io;
}

void Worker::spawn(std::string name, Task<> task) {
  ++state_->children;
  asio::co_spawn(state_->io, std::move(task),
                 [state = state_.get(), name = std::move(name)](const std::exception_ptr& exception) {
                   --state->children;
                   if (exception) end_process(name, exception);
                 });
}

std::size_t Worker::children() const {
  return state_->children;
}

void Worker::run() {
  state_->io.run();
  state_->io.restart();  // so that run() may be called again, and a stop() before it is not lost
}

void Worker::stop() {
  state_->io.stop();
}

Task<> Worker::sleep(Clock::duration duration) {
  asio::steady_timer timer(state_->io, duration);
  co_await timer.async_wait(asio::use_awaitable);
}

Deadline::Deadline(Worker& worker, std::function<void()> on_expiry)
    : worker_(worker), on_expiry_(std::move(on_expiry)) {}

Deadline::~Deadline() {
  clear();
}

void Deadline::set(Clock::duration from_now) {
  const bool armed = at_ != Clock::time_point::max();
  at_ = Clock::now() + from_now;
  expired_ = false;
  if (!armed) worker_.state_->link(*this);
}

void Deadline::clear() {
  if (at_ == Clock::time_point::max()) return;
  worker_.state_->unlink(*this);
  at_ = Clock::time_point::max();
}

}  // namespace sallyport::net
