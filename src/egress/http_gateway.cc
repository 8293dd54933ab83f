#include "egress/http_gateway.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "egress/doh.h"
#include "egress/relay.h"
#include "egress/request_fields.h"
#include "forward/transfer.h"
#include "http/reply.h"
#include "policy/decide.h"

namespace sallyport::egress {
namespace {

using forward::Fate;
using forward::Outcome;

constexpr std::string_view kWebsocket = "websocket";

// The upstream's answer as it is: framing and hop-by-hop fields have gone already.
class AnswerAsItIs final : public forward::Passage {
 public:
  Result<Reply> begin(upstream::AnswerHead head) override {
    std::vector<http::Field> fields;
    fields.reserve(head.headers.size());
    for (upstream::Header& header : head.headers) {
      fields.push_back({std::move(header.name), std::move(header.value)});
    }
    return Reply{head.status, std::move(fields), head.body_bytes};
  }
};

// One request, from its head to its last audit line.
class Serving {
 public:
  Serving(const HttpContext& context, const forward::ClientSide& client, http::Connection& connection,
          http::RequestHead head)
      : context_(context),
        client_(client),
        connection_(connection),
        head_(std::move(head)),
        event_(forward::event_of(client, head_)) {}

  net::Task<Fate> run();

 private:
  Status read_head();
  // Also what the rule says beside.
  Status judge();
  std::uint64_t most_body_bytes() const;
  net::Task<Fate> carry();
  net::Task<Outcome> switch_over(Outcome outcome);
  upstream::Request upstream_request() const;

  net::Task<Fate> refuse(Error error);  // before Begin: leaves the one audit line
  net::Task<Fate> tell_refusal(Reason reason);
  std::string particulars(Reason reason) const;
  Fate fate() const { return connection_.reusable() ? Fate::KeepAlive : Fate::Close; }

  const HttpContext& context_;
  const forward::ClientSide& client_;
  http::Connection& connection_;
  http::RequestHead head_;
  net::Clock::time_point started_ = net::Clock::now();
  audit::Event event_;

  std::optional<policy::UseHttp> asked_;
  std::uint64_t max_body_ = 0;
  std::optional<forward::Live::Entry> live_;  // once it is allowed
};

net::Task<Fate> Serving::run() {
  connection_.limit_body_idle(context_.grant.timeouts.idle);
  Status good = read_head();
  if (good) good = judge();
  if (!good) co_return co_await refuse(std::move(good).error());

  event_.kind = audit::Kind::Begin;
  if (auto recorded = co_await context_.recorder.record(event_); !recorded) {
    co_return co_await tell_refusal(Reason::AuditUnavailable);
  }
  co_return co_await carry();
}

// ---- reading and judging ----

Status Serving::read_head() {
  if (head_.host.host != client_.host || head_.host.port != client_.port) {
    connection_.close_after_response();
    return fail(Reason::HostMismatch, "Host is " + head_.host.host.str());
  }
  const auto method = policy::method_from_name(head_.method);
  if (!method) return fail(Reason::BadRequest, "the method");
  auto path = policy::HttpPath::parse(head_.target);
  if (!path) return fail(std::move(path));
  asked_ = policy::UseHttp{.scheme = client_.scheme,
                           .host = client_.host,
                           .port = client_.port,
                           .method = *method,
                           .path = std::move(*path),
                           .websocket = asks_for_websocket(head_)};
  event_.path = asked_->path.target();
  return {};
}

Status Serving::judge() {
  policy::Decision decision = policy::decide(context_.grant, *asked_);
  if (!decision.allowed() && asked_->websocket) {
    // A server may ignore an Upgrade (RFC 9110, 7.8), and so may we.
    asked_->websocket = false;
    decision = policy::decide(context_.grant, *asked_);
  }
  if (decision.rule) event_.rule = policy::source_of(context_.grant, *decision.rule).str();
  if (!decision.allowed()) return fail(decision.reason, "");
  if (is_dns_over_https(head_, asked_->path)) return fail(Reason::DohRefused, "");
  max_body_ = context_.grant.allow.at(decision.rule.value().index).max_body;
  if (head_.body == http::BodyKind::Declared && head_.body_bytes > max_body_) {
    return fail(Reason::TooLarge, "the declared body");
  }
  live_.emplace(context_.live, forward::Judged{.operation = *asked_, .body_bytes = most_body_bytes()});
  return {};
}

std::uint64_t Serving::most_body_bytes() const {
  switch (head_.body) {
    case http::BodyKind::None:
      return 0;
    case http::BodyKind::Declared:
      return head_.body_bytes;
    case http::BodyKind::Chunked:
      return max_body_;
  }
  return UINT64_MAX;
}

// ---- carrying it out ----

upstream::Request Serving::upstream_request() const {
  const auto holds_credential = [&](std::size_t i) { return !context_.grant.git[i].credential.empty(); };
  const bool ours = std::ranges::any_of(context_.grant.git.naming(client_.host), holds_credential);
  upstream::Request request{
      .request_id = event_.request,
      .host = client_.host,
      .port = client_.port,
      .scheme = client_.scheme,
      .method = head_.method,
      .target = asked_->path.target(),
      .headers = forwarded_fields(head_, ours ? OwnCredentials::Drop : OwnCredentials::Pass)};
  if (asked_->websocket) request.upgrade = kWebsocket;
  switch (head_.body) {
    case http::BodyKind::None:
      break;
    case http::BodyKind::Declared:
      request.body = upstream::BodyKind::Declared;
      request.body_bytes = head_.body_bytes;
      break;
    case http::BodyKind::Chunked:
      request.body = upstream::BodyKind::Open;
      break;
  }
  return request;
}

net::Task<Fate> Serving::carry() {
  AnswerAsItIs passage;
  Outcome outcome = co_await forward::carry({.connection = connection_,
                                             .live = *live_,
                                             .opener = context_.direct,
                                             .request = upstream_request(),
                                             .passage = passage,
                                             .upstream_idle = context_.grant.timeouts.idle,
                                             .max_body = max_body_});
  if (outcome.switched && !live_->revoked()) outcome = co_await switch_over(std::move(outcome));
  context_.recorder.note(forward::end_of(event_, outcome, started_));
  if (outcome.error.reason != Reason::None) co_return co_await tell_refusal(outcome.error.reason);
  // The answer came early: a client that still sends would never read it if the connection closed.
  co_await connection_.drain_body(max_body_ - std::min(max_body_, outcome.bytes_in));
  co_return fate();
}

// From here on the two ends speak their own protocol, and we only move bytes.
net::Task<Outcome> Serving::switch_over(Outcome outcome) {
  auto reply = AnswerAsItIs().begin(std::move(*outcome.switched_head));
  if (!reply) co_return outcome;
  live_->end_by([&] {
    connection_.abort();
    outcome.switched->stream->close();
  });
  auto early = co_await connection_.switch_protocols(std::string(kWebsocket), std::move(reply->fields));
  if (!early) {
    live_->end_by({});
    outcome.error = live_->revoked() ? Error{Reason::Revoked, ""} : std::move(early).error();
    co_return outcome;
  }
  connection_.limit_body_idle(context_.grant.timeouts.idle);
  Relayed relayed =
      co_await relay({.stream = connection_.stream(), .early = std::move(*early)},
                     {.stream = *outcome.switched->stream, .early = std::move(outcome.switched->early)});
  live_->end_by({});
  outcome.switched.reset();
  outcome.bytes_in = relayed.from_first;
  outcome.bytes_out = relayed.from_second;
  outcome.error = live_->revoked() ? Error{Reason::Revoked, ""} : std::move(relayed.error);
  co_return outcome;
}

// ---- saying no ----

net::Task<Fate> Serving::refuse(Error error) {
  const Reason reason = error.reason;
  co_await context_.recorder.refuse(event_, std::move(error));
  co_return co_await tell_refusal(reason);
}

net::Task<Fate> Serving::tell_refusal(Reason reason) {
  if (connection_.response_begun()) co_return Fate::Close;  // it was cut, and the client has seen that
  if (reason == Reason::ClientClosed || reason == Reason::ClientTimeout) {
    connection_.abort();
    co_return Fate::Close;
  }
  co_await http::refuse(connection_, {reason, particulars(reason), event_.request});
  co_return fate();
}

// Nothing of the query or the fields: they may hold secrets, and a page may be shown to others.
std::string Serving::particulars(Reason reason) const {
  std::string text = client_.host.str();
  if (reason == Reason::PlainHttp) return text + "\nUse https://" + text + "/ instead.";
  const bool a_rule_helps = asked_ && info(reason).origin == Origin::Client && info(reason).status == 403 &&
                            reason != Reason::DohRefused && reason != Reason::Revoked;
  return a_rule_helps ? text + forward::how_to_allow(reason, *asked_) : text;
}

}  // namespace

net::Task<Fate> serve_http(const HttpContext& context, const forward::ClientSide& client,
                           http::Connection& connection, http::RequestHead head) {
  Serving serving(context, client, connection, std::move(head));
  co_return co_await serving.run();
}

}  // namespace sallyport::egress
