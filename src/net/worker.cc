#include "net/worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
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

// The event loop is the last but three, so that it goes while the rest is still there: it destroys the
// children's frames, and the deadlines in them unlink themselves from the list here.
struct Worker::State : std::enable_shared_from_this<State> {
  State() : own(std::make_unique<asio::io_context>(1)), io(*own) { work.emplace(io.get_executor()); }
  explicit State(asio::io_context& whole) : io(whole) {}

  std::size_t children = 0;
  Deadline* first = nullptr;   // armed deadlines
  Deadline* cursor = nullptr;  // the one that a running tick looks at next
  std::size_t timed = 0;       // of the armed ones, those that are not for the end alone
  bool ticking = false;
  bool ending = false;
  std::unique_ptr<asio::io_context> own;  // none in a part
  asio::io_context& io;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  asio::steady_timer timer{io};
  asio::steady_timer childless{io, Clock::time_point::max()};  // cancelled when the last child is gone

  void link(Deadline& deadline) {
    deadline.next_ = first;
    deadline.previous_ = nullptr;
    if (first != nullptr) first->previous_ = &deadline;
    first = &deadline;
    if (deadline.timed()) ++timed;
    schedule_tick();
  }

  void unlink(Deadline& deadline) {
    if (cursor == &deadline) cursor = deadline.next_;
    if (first == &deadline) first = deadline.next_;
    if (deadline.previous_ != nullptr) deadline.previous_->next_ = deadline.next_;
    if (deadline.next_ != nullptr) deadline.next_->previous_ = deadline.previous_;
    deadline.next_ = deadline.previous_ = nullptr;
    if (deadline.timed()) --timed;
  }

  void schedule_tick() {
    const bool wanted = ending ? first != nullptr : timed > 0;
    if (ticking || !wanted) return;
    ticking = true;
    timer.expires_after(ending ? Deadline::kEndTick : Deadline::kTick);
    // A part may be gone by then, and a wait that is over cannot be taken back.
    timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto state = weak.lock();
      if (state == nullptr) return;
      state->ticking = false;
      if (!error) state->tick();
      state->schedule_tick();
    });
  }

  // A callback may set, clear and destroy any deadline: unlink() keeps the cursor right.
  void tick() {
    const auto now = Clock::now();
    cursor = first;
    while (cursor != nullptr) {
      Deadline& deadline = *cursor;
      cursor = deadline.next_;
      if (!ending && deadline.at_ > now) continue;
      deadline.clear();
      deadline.expired_ = true;
      deadline.on_expiry_();
    }
  }
};

Worker::Worker() : state_(std::make_shared<State>()) {}

Worker::Worker(PartOf part) : state_(std::make_shared<State>(part.whole.io())) {}

Worker::~Worker() = default;

asio::io_context& Worker::io() {
  return state_->io;
}

void Worker::spawn(std::string name, Task<> task) {
  ++state_->children;
  asio::co_spawn(state_->io, std::move(task),
                 [state = state_.get(), name = std::move(name)](const std::exception_ptr& exception) {
                   if (--state->children == 0) state->childless.cancel();
                   if (exception) end_process(name, exception);
                 });
}

std::size_t Worker::children() const {
  return state_->children;
}

Task<> Worker::end() {
  state_->ending = true;
  state_->timer.cancel();  // the next tick is an early one
  state_->tick();
  state_->schedule_tick();
  while (state_->children > 0) {
    boost::system::error_code ignored;
    co_await state_->childless.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
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
  arm(Clock::now() + from_now);
}

void Deadline::set_at_end() {
  arm(Clock::time_point::max());
}

void Deadline::arm(Clock::time_point at) {
  expired_ = false;
  // Most often it is put off: then it stays where it is.
  if (armed_ && timed() && at != Clock::time_point::max()) {
    at_ = at;
    return;
  }
  clear();
  at_ = at;
  armed_ = true;
  worker_.state_->link(*this);
}

void Deadline::clear() {
  if (!std::exchange(armed_, false)) return;
  worker_.state_->unlink(*this);
}

}  // namespace sallyport::net
