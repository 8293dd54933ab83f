// The explicit proxy's part of the front. It leads to nothing that the other ways do not lead to.
#include <utility>

#include "audit/event.h"
#include "forward/served.h"
#include "gate/front.h"
#include "http/reply.h"

namespace sallyport::gate {

net::Task<> Front::serve_proxy(Fd socket, Target target) {
  target.entry = audit::Entry::Proxy;
  auto stream = net::make_socket_stream(session_.worker, std::move(socket), net::Peer::Client);
  http::Connection connection(*stream, policy::kHttpPort, session_.grant().timeouts.request_head,
                              http::Entry::Proxy);
  auto connect = co_await serve_requests(session_.in_force,
                                         {.entry = target.entry,
                                          .destination = target.destination,
                                          .scheme = policy::Scheme::Http,
                                          .port = policy::kHttpPort,
                                          .host = std::nullopt},
                                         connection);
  if (connect) {
    co_await serve_connect(*std::move(connect), std::move(stream), connection, std::move(target));
  }
}

net::Task<> Front::refuse_connect(http::RequestHead head, http::Connection& connection, Target target,
                                  policy::Decision decision) {
  const policy::Connect asked{*target.host, target.port};
  audit::Event event;
  event.request = audit::new_request_id();
  event.entry = target.entry;
  event.destination = std::move(target.destination);
  event.host = asked.host.str();
  event.port = asked.port;
  event.method = std::move(head.method);
  if (decision.rule) event.rule = policy::source_of(session_.grant(), *decision.rule).str();
  const std::string id = event.request;
  const bool too_fast = decision.reason == Reason::TooMany;
  co_await session_.recorder().refuse(std::move(event),
                                      {decision.reason, std::string(too_fast ? kTooFast : "")});
  std::string particulars = asked.host.str();
  if (!too_fast) particulars += forward::how_to_allow(decision.reason, asked);
  static_cast<void>(co_await http::refuse(connection, {decision.reason, std::move(particulars), id}));
  co_await connection.finish();
}

net::Task<> Front::serve_connect(http::RequestHead head, std::unique_ptr<net::Stream> stream,
                                 http::Connection& connection, Target target) {
  target.host = head.host.host;
  target.port = head.host.port;
  auto decision = policy::decide(session_.grant(), policy::Connect{*target.host, target.port});
  // What is judged one by one inside counts there.
  const bool leads_to_requests = decision.allowed() && (decision.carriage == policy::Carriage::Inspect ||
                                                        decision.carriage == policy::Carriage::PlainHttp);
  const auto now = net::Clock::now();
  if (!leads_to_requests && !session_.usage().requests.take(now)) {
    connection.say_retry_after(session_.usage().requests.time_to_any(now));
    decision = policy::Decision();
    decision.reason = Reason::TooMany;
  }
  if (!decision.allowed()) {
    co_await refuse_connect(std::move(head), connection, std::move(target), std::move(decision));
    co_return;
  }
  auto early = co_await connection.open_tunnel();
  if (!early) co_return;
  Fd socket = stream->release();
  switch (decision.carriage) {
    case policy::Carriage::Inspect:
    case policy::Carriage::Splice:
      co_await serve_tls(std::move(socket), *std::move(early), std::move(target));
      break;
    case policy::Carriage::PlainHttp:
      co_await serve_plain_http(std::move(socket), *std::move(early), std::move(target));
      break;
    case policy::Carriage::Raw:
      co_await serve_raw(std::move(socket), *std::move(early), std::move(target));
      break;
  }
}

// Judged once more: another policy may have taken force while the client was told.
net::Task<> Front::serve_raw(Fd connection, std::string early, Target target) {
  const auto decision = policy::decide(session_.grant(), policy::Connect{*target.host, target.port});
  if (decision.allowed() && decision.carriage == policy::Carriage::Raw) {
    co_await carry(std::move(connection), std::move(early), std::move(target), decision);
  } else {
    co_await refuse_address(std::move(connection), std::move(target), Reason::Revoked);
  }
}

}  // namespace sallyport::gate
