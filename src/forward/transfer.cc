#include "forward/transfer.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "base/buffer.h"
#include "forward/limits.h"

namespace sallyport::forward {
namespace {

namespace asio = boost::asio;

constexpr int kSwitchingProtocols = 101;

// The two coroutines of a transfer and what they tell each other. Once the body has been sent its coroutine
// watches whether the client leaves, until the answer is over.
class Transferring {
 public:
  Transferring(Journey& journey, upstream::Exchange& exchange, const asio::any_io_executor& executor)
      : connection_(journey.connection),
        exchange_(exchange),
        passage_(journey.passage),
        upstream_idle_(journey.upstream_idle),
        prefix_(std::move(journey.prefix)),
        max_body_(journey.max_body),
        change_(executor, net::Clock::time_point::max()) {}

  net::Task<> move_body();
  net::Task<> move_answer();
  Outcome take_outcome() { return std::move(outcome_); }

 private:
  // What the body's coroutine is doing.
  enum class Body : std::uint8_t { Reading, Sending, Waiting };

  net::Task<Status> send_all();
  net::Task<bool> send(std::string_view bytes);
  net::Task<Status> pass_on(upstream::AnswerHead head);
  net::Task<Status> relay(Passage::Reply reply);
  net::Task<Status> relay_body(std::optional<std::uint64_t> length);
  net::Task<> wait_for_change();
  // The first failure is the cause, the others follow from it.
  void blame(Error error);

  http::Connection& connection_;
  upstream::Exchange& exchange_;
  Passage& passage_;
  net::Clock::duration upstream_idle_;
  std::string prefix_;
  std::uint64_t max_body_;
  asio::steady_timer change_;  // never expires; cancelled when body_ has changed
  Body body_ = Body::Waiting;
  bool answer_decided_ = false;  // nothing more is to be sent
  bool answer_over_ = false;     // and so is the transfer
  Outcome outcome_;
};

net::Task<> Transferring::wait_for_change() {
  co_await change_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Transferring::blame(Error error) {
  if (outcome_.error.reason == Reason::None) outcome_.error = std::move(error);
}

net::Task<> Transferring::move_body() {
  Status status = co_await send_all();
  body_ = Body::Waiting;
  change_.cancel();
  if (status && connection_.body_finished()) status = co_await connection_.wait_for_close();
  if (!status && !answer_decided_ && !connection_.answer_written()) {
    // Nobody is there any more to read the answer, or the body's end can never come.
    blame(std::move(status).error());
    exchange_.abort();
    if (connection_.response_begun()) connection_.abort();
  }
  while (!answer_over_) co_await wait_for_change();
}

// Until the body's end, or until the upstream takes no more: then the answer says why. Fails when the client
// does.
net::Task<Status> Transferring::send_all() {
  if (!prefix_.empty() && !co_await send(prefix_)) co_return Status{};
  prefix_ = {};
  Buffer buffer(connection_.body_finished() ? 0 : kMoveBytes);
  while (!connection_.body_finished()) {
    if (answer_decided_) co_return Status{};
    body_ = Body::Reading;
    const auto got = co_await connection_.read_body(buffer.all());
    if (!got) co_return fail(Result(got));
    if (answer_decided_) co_return Status{};
    if (*got > max_body_ - outcome_.bytes_in) co_return fail(Reason::TooLarge, "the body");
    if (*got > 0 && !co_await send(buffer.first(*got))) co_return Status{};
  }
  body_ = Body::Sending;
  co_await exchange_.end_body();
  // The client owes nothing now; how long the upstream may think is the exchange's to limit.
  if (!connection_.response_begun()) connection_.stream().no_limit();
  co_return Status{};
}

net::Task<bool> Transferring::send(std::string_view bytes) {
  body_ = Body::Sending;
  outcome_.bytes_in += bytes.size();
  const Status sent = co_await exchange_.send_body(bytes);
  co_return sent.has_value();
}

net::Task<> Transferring::move_answer() {
  auto head = co_await exchange_.read_head();
  Status status;
  if (!head) {
    status = fail(std::move(head));
  } else {
    outcome_.upstream_status = head->status;
    status = co_await pass_on(std::move(*head));
  }
  if (!status) blame(std::move(status).error());
  answer_decided_ = true;
  if (body_ == Body::Sending) exchange_.abort();  // who answers and reads no further would hold it for long
  while (body_ != Body::Waiting) co_await wait_for_change();
  answer_over_ = true;
  connection_.stop_waiting();
  change_.cancel();
}

net::Task<Status> Transferring::pass_on(upstream::AnswerHead head) {
  if (head.status == kSwitchingProtocols) {
    auto switched = exchange_.take_stream();
    if (!switched) co_return fail(std::move(switched));
    outcome_.switched = std::move(*switched);
    outcome_.switched_head = std::move(head);
    co_return Status{};
  }
  auto reply = passage_.begin(std::move(head));
  if (!reply) co_return fail(std::move(reply));
  co_return co_await relay(std::move(*reply));
}

net::Task<Status> Transferring::relay(Passage::Reply reply) {
  const auto length = reply.length;
  connection_.limit_body_idle(upstream_idle_ + kAnswerGrace);
  Status status = co_await connection_.begin_response(reply.status, std::move(reply.fields), length);
  if (status) status = co_await relay_body(length);
  if (status) status = co_await connection_.end_response();
  if (!status) {
    answer_decided_ = true;  // the failing read of the body, which follows, is not the cause
    connection_.abort();
  }
  co_return status;
}

net::Task<Status> Transferring::relay_body(std::optional<std::uint64_t> length) {
  // Of an empty body the end is still to be read.
  const std::uint64_t bytes = std::clamp<std::uint64_t>(length.value_or(kMoveBytes), 1, kMoveBytes);
  Buffer buffer(static_cast<std::size_t>(bytes));
  for (;;) {
    const auto got = co_await exchange_.read_body(buffer.all());
    if (!got) co_return fail(Result(got));
    if (*got == 0) break;
    const auto passed = passage_.pass(buffer.first(*got));
    if (!passed) co_return fail(Result(passed));
    outcome_.bytes_out += passed->size();
    if (auto written = co_await connection_.write_body(*passed); !written) co_return written;
  }
  co_return passage_.end();
}

// A client that waits for its answer, with its body sent, can still be told; any other sees the cut.
void cut(http::Connection& connection, upstream::Exchange* exchange) {
  if (exchange != nullptr) exchange->abort();
  if (exchange == nullptr || connection.response_begun() || !connection.body_finished()) connection.abort();
}

net::Task<Outcome> transfer(Journey& journey, upstream::Exchange& exchange) {
  const auto executor = co_await asio::this_coro::executor;
  Transferring both(journey, exchange, executor);
  auto group =
      asio::experimental::make_parallel_group(asio::co_spawn(executor, both.move_body(), asio::deferred),
                                              asio::co_spawn(executor, both.move_answer(), asio::deferred));
  const auto [order, body_exception, answer_exception] =
      co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  (void)order;
  if (body_exception) std::rethrow_exception(body_exception);
  if (answer_exception) std::rethrow_exception(answer_exception);
  Outcome outcome = both.take_outcome();
  if (outcome.error.reason != Reason::None && journey.connection.response_begun()) {
    journey.connection.abort();
  }
  co_return outcome;
}

}  // namespace

net::Task<Outcome> carry(Journey journey) {
  if (journey.live.revoked()) co_return Outcome{.error = {Reason::Revoked, ""}};
  Result<std::unique_ptr<upstream::Exchange>> exchange;
  journey.live.end_by([&] { cut(journey.connection, exchange ? exchange->get() : nullptr); });
  journey.request.still_wanted = [&live = journey.live] { return !live.revoked(); };
  // The client waits for us, and the upstream's own limits say for how long.
  journey.connection.stream().no_limit();
  exchange = co_await journey.opener.open(std::move(journey.request));
  journey.connection.limit_body_idle(journey.upstream_idle);
  Outcome outcome;
  if (!exchange) {
    outcome.error = std::move(exchange).error();
  } else if (auto told = co_await journey.connection.send_continue(); !told) {
    outcome.error = std::move(told).error();
  } else if (!journey.live.revoked()) {
    outcome = co_await transfer(journey, **exchange);
  }
  journey.live.end_by({});
  // Whatever failed then, this was why.
  if (journey.live.revoked()) outcome.error = {Reason::Revoked, ""};
  if (outcome.error.reason == Reason::TooMany) {
    journey.connection.say_retry_after(journey.opener.time_to_retry());
  }
  co_return outcome;
}

}  // namespace sallyport::forward
