// For tests: an upstream that answers by a script.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "upstream/exchange.h"

namespace sallyport::forward {

// What the upstream does, and what it saw. Outlives its exchanges.
struct UpstreamScript {
  enum class When : std::uint8_t { AfterBody, AtOnce, Never };
  enum class Reads : std::uint8_t { Everything, Nothing, Fails };
  enum class Ends : std::uint8_t { Cleanly, Later, Cut, Silently };  // Later: when others had their turn

  std::optional<Reason> open_error;
  When answers = When::AfterBody;
  Reads reads = Reads::Everything;
  upstream::AnswerHead head{.status = 200, .headers = {}, .body_bytes = std::nullopt};
  std::vector<std::string> body;
  Ends ends = Ends::Cleanly;
  upstream::Exchange::Switched switched;  // for a head with 101
  // What happens elsewhere meanwhile: while it is reached, and when its answer's head and body are read.
  std::function<void()> while_opening = [] {};
  std::function<void()> while_answering = [] {};

  std::vector<upstream::Request> opened;
  std::string sent;
  bool body_ended = false;
  int alive = 0;
};

class FakeExchange : public upstream::Exchange {
 public:
  explicit FakeExchange(UpstreamScript& script) : script_(script) { ++script_.alive; }
  ~FakeExchange() override { --script_.alive; }

  net::Task<Status> send_body(std::string_view bytes) override {
    if (script_.reads == UpstreamScript::Reads::Fails) co_return fail(Reason::UpstreamClosed, "fake");
    while (script_.reads == UpstreamScript::Reads::Nothing && !aborted_) co_await sleep(sending_);
    if (aborted_) co_return fail(Reason::UpstreamClosed, "aborted");
    script_.sent += bytes;
    co_return Status{};
  }
  net::Task<Status> end_body() override {
    script_.body_ended = true;
    wake();
    co_return Status{};
  }
  net::Task<Result<upstream::AnswerHead>> read_head() override {
    const auto waits = [this] {
      return script_.answers == UpstreamScript::When::Never ||
             (script_.answers == UpstreamScript::When::AfterBody && !script_.body_ended);
    };
    script_.while_answering();
    while (waits() && !aborted_) co_await sleep(answering_);
    if (aborted_) co_return fail(Reason::UpstreamClosed, "aborted");
    co_return script_.head;
  }
  net::Task<Result<std::size_t>> read_body(std::span<char> into) override {
    script_.while_answering();
    if (next_ < script_.body.size()) {
      const std::string& piece = script_.body[next_++];
      std::copy(piece.begin(), piece.end(), into.begin());
      co_return piece.size();
    }
    while (script_.ends == UpstreamScript::Ends::Silently && !aborted_) co_await sleep(answering_);
    for (int turn = 0; script_.ends == UpstreamScript::Ends::Later && turn < 10; ++turn) {
      co_await boost::asio::post(boost::asio::use_awaitable);
    }
    const bool later = script_.ends == UpstreamScript::Ends::Later && !aborted_;
    if (later || script_.ends == UpstreamScript::Ends::Cleanly) co_return std::size_t{0};
    co_return fail(aborted_ ? Reason::UpstreamClosed : Reason::UpstreamTruncated, "fake");
  }
  Result<Switched> take_stream() override {
    if (script_.head.status != 101) return fail(Reason::Internal, "fake");
    return std::move(script_.switched);
  }
  void abort() noexcept override {
    aborted_ = true;
    wake();
  }

 private:
  using Timer = std::optional<boost::asio::steady_timer>;

  void wake() {
    if (sending_) sending_->cancel();
    if (answering_) answering_->cancel();
  }
  static net::Task<> sleep(Timer& timer) {
    timer.emplace(co_await boost::asio::this_coro::executor, std::chrono::steady_clock::time_point::max());
    co_await timer->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }

  UpstreamScript& script_;
  std::size_t next_ = 0;
  bool aborted_ = false;
  Timer sending_;
  Timer answering_;
};

class FakeOpener : public upstream::Opener {
 public:
  explicit FakeOpener(UpstreamScript& script) : script_(script) {}
  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request request) override {
    script_.opened.push_back(std::move(request));
    script_.while_opening();
    if (script_.open_error) co_return fail(*script_.open_error, "fake");
    co_return std::make_unique<FakeExchange>(script_);
  }

 private:
  UpstreamScript& script_;
};

}  // namespace sallyport::forward
