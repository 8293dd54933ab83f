#include "git/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "git/advertisement.h"
#include "git/limits.h"
#include "git/refusal.h"

namespace sallyport::git {
namespace {

namespace asio = boost::asio;

// What a body may be packed with (IANA's names). Any other word would be the upstream's own, and it knows the
// credential.
constexpr std::array<std::string_view, 6> kEncodings{"identity", "gzip", "x-gzip", "deflate", "br", "zstd"};

std::string answer_type(const policy::GitRoute& route) {
  const bool advertisement = route.endpoint == policy::GitEndpoint::Advertisement;
  return advertisement ? advertisement_type(route.service) : result_type(route.service);
}

// The two coroutines of a transfer and what they tell each other. Only the answer's returns by itself, and
// the other one is cancelled then: never inside a read of the body or a call of the exchange, where bytes
// would be lost, but only where it waits for the client to leave or for a change.
class Transfer {
 public:
  Transfer(http::Connection& connection, upstream::Exchange& exchange, const policy::GitRoute& route,
           net::Clock::duration upstream_idle, const asio::any_io_executor& executor)
      : connection_(connection),
        exchange_(exchange),
        route_(route),
        upstream_idle_(upstream_idle),
        change_(executor, net::Clock::time_point::max()) {}

  net::Task<> move_body(std::string prefix);
  net::Task<> move_answer();
  Outcome take_outcome() { return std::move(outcome_); }

 private:
  // What the body's coroutine is doing.
  enum class Body : std::uint8_t { Reading, Sending, Waiting };

  net::Task<Status> send_all(std::string prefix);
  net::Task<bool> send(std::string_view bytes);
  net::Task<Status> relay(upstream::AnswerHead head);
  net::Task<Status> relay_body(std::optional<AdvertisementFilter> filter,
                               std::optional<std::uint64_t> length);
  net::Task<> wait_for_change();
  // The first failure is the cause, the others follow from it.
  void blame(Error error);

  http::Connection& connection_;
  upstream::Exchange& exchange_;
  const policy::GitRoute& route_;
  net::Clock::duration upstream_idle_;
  asio::steady_timer change_;  // never expires; cancelled when body_ has changed
  Body body_ = Body::Waiting;
  bool answer_decided_ = false;   // nothing more is to be sent
  bool answer_complete_ = false;  // its last bytes are being written: the client may leave
  Outcome outcome_;
};

net::Task<> Transfer::wait_for_change() {
  co_await change_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Transfer::blame(Error error) {
  if (outcome_.error.reason == Reason::None) outcome_.error = std::move(error);
}

net::Task<> Transfer::move_body(std::string prefix) {
  Status status = co_await send_all(std::move(prefix));
  body_ = Body::Waiting;
  change_.cancel();
  if (status && connection_.body_finished()) status = co_await connection_.wait_for_close();
  if (!status && !answer_decided_ && !answer_complete_) {
    // Nobody is there any more to read the answer, or the body's end can never come.
    blame(std::move(status).error());
    exchange_.abort();
    if (connection_.response_begun()) connection_.abort();
  }
  for (;;) co_await wait_for_change();
}

// Until the body's end, or until the upstream takes no more: then the answer says why. Fails when the client
// does.
net::Task<Status> Transfer::send_all(std::string prefix) {
  if (!prefix.empty() && !co_await send(prefix)) co_return Status{};
  prefix = {};
  std::string buffer(connection_.body_finished() ? 0 : kMoveBytes, '\0');
  while (!connection_.body_finished()) {
    if (answer_decided_) co_return Status{};
    body_ = Body::Reading;
    const auto got = co_await connection_.read_body(buffer);
    if (!got) co_return fail(Result(got));
    if (answer_decided_) co_return Status{};
    if (*got > 0 && !co_await send(std::string_view(buffer).substr(0, *got))) co_return Status{};
  }
  body_ = Body::Sending;
  co_await exchange_.end_body();
  // The client owes nothing now; how long the upstream may think is the exchange's to limit.
  if (!connection_.response_begun()) connection_.stream().no_limit();
  co_return Status{};
}

net::Task<bool> Transfer::send(std::string_view bytes) {
  body_ = Body::Sending;
  outcome_.bytes_in += bytes.size();
  const Status sent = co_await exchange_.send_body(bytes);
  co_return sent.has_value();
}

net::Task<> Transfer::move_answer() {
  auto head = co_await exchange_.read_head();
  Status status;
  if (!head) {
    status = fail(std::move(head));
  } else {
    outcome_.upstream_status = head->status;
    status = judge_answer(route_, *head);
    if (status) status = co_await relay(std::move(*head));
  }
  if (!status) blame(std::move(status).error());
  answer_decided_ = true;
  if (body_ == Body::Sending) exchange_.abort();  // who answers and reads no further would hold it for long
  while (body_ != Body::Waiting) co_await wait_for_change();
}

net::Task<Status> Transfer::relay(upstream::AnswerHead head) {
  // The fields are ours, not the upstream's: in their values it could hand the credential on. So no
  // Set-Cookie, no WWW-Authenticate (a credential helper would erase what it holds), no Location, no Alt-Svc
  // either.
  std::vector<http::Field> fields{{"content-type", answer_type(route_)}, {"cache-control", "no-store"}};
  if (const std::string_view encoding = head.header("content-encoding"); !encoding.empty()) {
    fields.push_back({"content-encoding", std::string(encoding)});
  }
  std::optional<AdvertisementFilter> filter;
  std::optional<std::uint64_t> length = head.body_bytes;
  if (route_.endpoint == policy::GitEndpoint::Advertisement) {
    filter.emplace(route_.service);
    length.reset();
  }
  connection_.limit_body_idle(upstream_idle_ + kAnswerGrace);
  Status status = co_await connection_.begin_response(head.status, std::move(fields), length);
  if (status) status = co_await relay_body(std::move(filter), length);
  if (status) {
    answer_complete_ = true;
    status = co_await connection_.end_response();
  }
  if (!status) {
    answer_decided_ = true;  // the failing read of the body, which follows, is not the cause
    connection_.abort();
  }
  co_return status;
}

net::Task<Status> Transfer::relay_body(std::optional<AdvertisementFilter> filter,
                                       std::optional<std::uint64_t> length) {
  std::string buffer(kMoveBytes, '\0');
  for (;;) {
    const auto got = co_await exchange_.read_body(buffer);
    if (!got) co_return fail(Result(got));
    if (*got == 0) break;
    std::string_view bytes = std::string_view(buffer).substr(0, *got);
    Result<std::string> filtered;
    if (filter) {
      filtered = filter->feed(bytes);
      if (!filtered) co_return fail(std::move(filtered));
      bytes = *filtered;
    }
    outcome_.bytes_out += bytes.size();
    answer_complete_ = length == outcome_.bytes_out;
    if (auto written = co_await connection_.write_body(bytes); !written) co_return written;
  }
  co_return filter ? filter->finish() : Status{};
}

// A coroutine that was cancelled throws operation_aborted; anything else is a bug that must not be lost.
void rethrow_unless_cancelled(const std::exception_ptr& exception) {
  if (!exception) return;
  try {
    std::rethrow_exception(exception);
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
}

// Without a word of the upstream's own: it could be the credential, and this goes into the audit log.
std::unexpected<Error> upstream_said(Reason reason, const upstream::AnswerHead& head) {
  return fail(reason, fmt::format("upstream status {}", head.status));
}

}  // namespace

net::Task<Outcome> transfer(http::Connection& connection, upstream::Exchange& exchange,
                            const policy::GitRoute& route, std::string prefix,
                            net::Clock::duration upstream_idle) {
  const auto executor = co_await asio::this_coro::executor;
  Transfer both(connection, exchange, route, upstream_idle, executor);
  auto group = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, both.move_body(std::move(prefix)), asio::deferred),
      asio::co_spawn(executor, both.move_answer(), asio::deferred));
  const auto [order, body_exception, answer_exception] =
      co_await group.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  (void)order;
  rethrow_unless_cancelled(body_exception);
  rethrow_unless_cancelled(answer_exception);
  Outcome outcome = both.take_outcome();
  if (outcome.error.reason != Reason::None && connection.response_begun()) connection.abort();
  co_return outcome;
}

Status judge_answer(const policy::GitRoute& route, const upstream::AnswerHead& head) {
  if (head.status == 401 || head.status == 403) {
    return upstream_said(Reason::UpstreamRefusedCredential, head);
  }
  if (head.status == 404 || head.status == 410) return upstream_said(Reason::UpstreamNotFound, head);
  if (head.status >= 300 && head.status < 400) return upstream_said(Reason::UpstreamRedirect, head);
  if (head.status != 200) return upstream_said(Reason::UpstreamError, head);

  const bool advertisement = route.endpoint == policy::GitEndpoint::Advertisement;
  const std::string wanted = answer_type(route);
  const std::string_view type = head.header("content-type");
  if (type != wanted && !type.starts_with(wanted + ";")) {
    return fail(Reason::UpstreamError, "upstream status 200 with a content type that is not git's");
  }
  // Asked for without Accept-Encoding, and read by the filter.
  const std::string_view encoding = head.header("content-encoding");
  if (advertisement && !encoding.empty()) {
    return fail(Reason::UpstreamMalformed, "an advertisement with a content encoding");
  }
  if (!encoding.empty() && std::ranges::find(kEncodings, encoding) == kEncodings.end()) {
    return fail(Reason::UpstreamMalformed, "an unknown content encoding");
  }
  return {};
}

}  // namespace sallyport::git
