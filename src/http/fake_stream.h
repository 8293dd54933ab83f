// For tests: a Stream with scripted input and recorded output, without a socket or a clock, and a way to run
// one coroutine to its end.
#pragma once

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/stream.h"

namespace sallyport::http {

class FakeStream : public net::Stream {
 public:
  // What follows the last piece of input.
  enum class End : std::uint8_t { Eof, Reset, Silence };

  explicit FakeStream(std::vector<std::string> pieces = {}, End end = End::Eof)
      : input_(pieces.begin(), pieces.end()), end_(end) {}

  // Every reader gets at most one piece at a time.
  void feed(std::string piece) {
    input_.push_back(std::move(piece));
    wake();
  }
  void feed_end(End end) {
    end_ = end;
    wake();
  }
  std::string take_output() { return std::exchange(output, {}); }

  net::Task<Status> wait_readable() override {
    stopped_ = false;
    while (input_.empty() && end_ == End::Silence && !closed && !stopped_) co_await sleep();
    if (closed || stopped_ || (input_.empty() && end_ == End::Reset))
      co_return fail(Reason::ClientClosed, "fake");
    co_return Status{};
  }
  net::Task<Result<std::size_t>> read_some(std::span<char> into) override {
    if (auto ready = co_await wait_readable(); !ready) co_return fail(std::move(ready));
    if (input_.empty()) co_return std::size_t{0};
    std::string& piece = input_.front();
    const std::size_t size = std::min(into.size(), piece.size());
    std::copy_n(piece.begin(), size, into.begin());
    piece.erase(0, size);
    if (piece.empty()) input_.pop_front();
    co_return size;
  }
  net::Task<Status> write_all(std::string_view bytes) override {
    if (closed || write_ended || writes_fail) co_return fail(Reason::ClientClosed, "fake");
    output += bytes;
    if (end_when_answered) feed_end(*end_when_answered);
    co_return Status{};
  }
  net::Task<Status> shutdown_write() override {
    write_ended = true;
    co_return Status{};
  }
  void stop_waiting() noexcept override {
    stopped_ = true;
    wake();
  }
  void close() noexcept override {
    closed = true;
    wake();
  }
  void limit_idle(net::Clock::duration limit) override { idle_limit = limit; }
  void limit_total(net::Clock::duration limit) override {
    idle_limit.reset();
    total_limits.push_back(limit);
  }
  void no_limit() override { idle_limit.reset(); }

  std::string output;
  bool closed = false;
  bool write_ended = false;
  bool writes_fail = false;
  std::optional<End> end_when_answered;  // once it has read something
  std::optional<net::Clock::duration> idle_limit;
  std::vector<net::Clock::duration> total_limits;  // in the order in which they were set

 private:
  void wake() {
    if (timer_) timer_->cancel();
  }
  net::Task<> sleep() {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, net::Clock::time_point::max());
    timer_ = &timer;
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    timer_ = nullptr;
  }

  std::deque<std::string> input_;
  End end_;
  bool stopped_ = false;
  boost::asio::steady_timer* timer_ = nullptr;  // of the reader that waits
};

// Runs `task` until nothing is left to do, and gives what it returned. A task that waits for ever is an
// exception.
template <class T>
T run_alone(net::Task<T> task) {
  boost::asio::io_context io(1);
  std::optional<T> result;
  boost::asio::co_spawn(io, std::move(task), [&](const std::exception_ptr& failure, T value) {
    if (failure) std::rethrow_exception(failure);
    result = std::move(value);
  });
  io.run_for(std::chrono::seconds(20));
  return std::move(result).value();
}

}  // namespace sallyport::http
