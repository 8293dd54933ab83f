// One thread, one event loop, and the coroutines that live on it. A coroutine never leaves its worker, so
// nothing that a worker owns needs a lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/task.h"

namespace boost::asio {
class io_context;
}

namespace sallyport::net {

using Clock = std::chrono::steady_clock;

class Deadline;

class Worker {
 public:
  struct PartOf {
    Worker& whole;
  };

  Worker();
  // A part of another: the same thread and loop, but children and deadlines of its own, so that they can all
  // be ended while the rest goes on. `whole` outlives it, and destroys what is left of its children.
  explicit Worker(PartOf part);
  // A part has no children by then.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  boost::asio::io_context& io();

  // Starts a coroutine as a child. An exception that leaves it is a bug: it is written to stderr with `name`
  // and ends the process, since nothing may go on with broken invariants.
  void spawn(std::string name, Task<> task);
  std::size_t children() const;
  // Of a part: from now on every deadline has passed, those that are set later too. Returns once the last
  // child is gone; the caller is none of them.
  Task<> end();

  // Runs until stop() is called. Not of a part.
  void run();
  void stop();
  // Lets other coroutines run, and times pass, for that long.
  Task<> sleep(Clock::duration duration);

 private:
  friend class Deadline;
  struct State;
  std::shared_ptr<State> state_;  // owners: this, and the wait for the next tick weakly
};

// One word of time for one connection, looked at by the worker's one periodic timer (kTick). When it passes,
// on_expiry is called once (it may destroy any deadline but its own); setting it again arms it again.
class Deadline {
 public:
  static constexpr Clock::duration kTick = std::chrono::milliseconds(250);
  // Of a worker that ends: what is set in answer to an end is ended soon too.
  static constexpr Clock::duration kEndTick = std::chrono::milliseconds(10);

  Deadline(Worker& worker, std::function<void()> on_expiry);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(Clock::duration from_now);
  // It passes with the worker's end, and not before. For every wait that has no limit of its own.
  void set_at_end();
  void clear();
  bool expired() const { return expired_; }

 private:
  friend class Worker;
  Worker& worker_;
  std::function<void()> on_expiry_;
  void arm(Clock::time_point at);
  bool timed() const { return at_ != Clock::time_point::max(); }

  Clock::time_point at_ = Clock::time_point::max();  // then it is for the worker's end
  bool armed_ = false;
  bool expired_ = false;
  Deadline* next_ = nullptr;
  Deadline* previous_ = nullptr;
};

}  // namespace sallyport::net
