#include "gate/requests.h"

#include <utility>

#include "http/reply.h"
#include "policy/http_path.h"

namespace sallyport::gate {
namespace {

forward::ClientSide client_of(const RequestSource& source, const http::RequestHead& head) {
  return {.entry = source.entry,
          .destination = source.destination,
          .host = source.host.value_or(head.host.host),
          .port = source.host ? source.port : head.host.port,
          .scheme = source.scheme};
}

// A host with [[git]] rules alone speaks nothing but git, and a URL of git's is nothing else anywhere. In the
// clear there is no git.
bool is_gits(const policy::Grant& grant, const forward::ClientSide& client, const std::string& target) {
  if (client.scheme == policy::Scheme::Http) return false;
  if (!grant.allow.names(client.host)) return true;
  const auto path = policy::HttpPath::parse(target);
  return path && path->is_git();
}

net::Task<forward::Fate> refuse_one_too_many(const Gateways& gateways, const forward::ClientSide& client,
                                             http::Connection& connection, http::RequestHead head,
                                             std::string detail) {
  audit::Event event = forward::event_of(client, head);
  const std::string id = event.request;
  co_await gateways.git.recorder.refuse(std::move(event), {Reason::TooMany, std::move(detail)});
  static_cast<void>(co_await http::refuse(connection, {Reason::TooMany, "", id}));
  co_return connection.reusable() ? forward::Fate::KeepAlive : forward::Fate::Close;
}

net::Task<forward::Fate> serve_one(const Gateways& gateways, const forward::ClientSide& client,
                                   http::Connection& connection, http::RequestHead head) {
  const auto now = net::Clock::now();
  if (!gateways.usage.requests.take(now)) {
    connection.say_retry_after(gateways.usage.requests.time_to_any(now));
    co_return co_await refuse_one_too_many(gateways, client, connection, std::move(head),
                                           std::string(kTooFast));
  }
  const auto slot = gateways.usage.requests_to.take(client.host);
  if (!slot) {
    std::string detail =
        std::to_string(gateways.usage.requests_to.taken(client.host)) + " requests to this host are at work";
    co_return co_await refuse_one_too_many(gateways, client, connection, std::move(head), std::move(detail));
  }
  if (is_gits(gateways.git.grant, client, head.target)) {
    co_return co_await git::serve(gateways.git, client, connection, std::move(head));
  }
  co_return co_await egress::serve_http(gateways.http, client, connection, std::move(head));
}

net::Task<> refuse_unreadable(const Gateways& gateways, const RequestSource& source,
                              http::Connection& connection, Error error) {
  const Reason reason = error.reason;
  audit::Event event = event_of(source);
  const std::string id = event.request;
  co_await gateways.git.recorder.refuse(std::move(event), std::move(error));
  static_cast<void>(co_await http::refuse(connection, {reason, "", id}));
}

// A connection that names its host before its requests do, while it is open.
class OpenConnection {
 public:
  OpenConnection(forward::Live& live, const RequestSource& source, http::Connection& connection)
      : connection_(connection) {
    if (!source.host) return;
    const auto carriage =
        source.scheme == policy::Scheme::Https ? policy::Carriage::Inspect : policy::Carriage::PlainHttp;
    live_.emplace(
        live, forward::Judged{.operation = policy::Connect{*source.host, source.port}, .carriage = carriage});
    live_->end_by([this] { end(); });
  }
  OpenConnection(const OpenConnection&) = delete;
  OpenConnection& operator=(const OpenConnection&) = delete;

  bool revoked() const { return live_ && live_->revoked(); }
  // Nothing was asked that is not answered.
  bool rests = true;

 private:
  void end() {
    if (rests) {
      connection_.abort();
    } else {
      connection_.close_after_response();
    }
  }

  http::Connection& connection_;
  std::optional<forward::Live::Entry> live_;
};

}  // namespace

audit::Event event_of(const RequestSource& source) {
  audit::Event event;
  event.request = audit::new_request_id();
  event.entry = source.entry;
  event.scheme = name(source.scheme);
  event.destination = source.destination;
  event.host = source.host ? source.host->str() : "";
  event.port = source.port;
  return event;
}

net::Task<std::optional<http::RequestHead>> serve_requests(const GatewaysInForce& in_force,
                                                           RequestSource source,
                                                           http::Connection& connection) {
  OpenConnection open(in_force->http.live, source, connection);
  while (true) {
    auto head = co_await connection.next_request();
    if (open.revoked()) break;
    const GatewaysInForce gateways = in_force;  // NOLINT(performance-unnecessary-copy-initialization)
    if (!head) {
      co_await refuse_unreadable(*gateways, source, connection, std::move(head).error());
      break;
    }
    if (!*head) break;
    if ((*head)->is_connect()) co_return **std::move(head);
    open.rests = false;
    const forward::ClientSide client = client_of(source, **head);
    const auto fate = co_await serve_one(*gateways, client, connection, **std::move(head));
    if (fate == forward::Fate::Close) break;
    open.rests = true;
  }
  co_await connection.finish();
  co_return std::nullopt;
}

}  // namespace sallyport::gate
