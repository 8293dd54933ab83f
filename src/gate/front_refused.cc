// How a name is refused under TLS: in words, to a client that trusts the session's authority. Whatever it
// asks for is only read to tell it which rule would allow that; nothing is looked up or dialled.
#include <string>
#include <utility>

#include "forward/served.h"
#include "gate/front.h"
#include "http/connection.h"
#include "http/reply.h"

namespace sallyport::gate {
namespace {

// As precisely as the request says it, so that the rule to add is no wider than what was asked for.
policy::Operation asked_for(const policy::Grant& grant, const policy::Connect& connection,
                            const http::RequestHead& head) {
  const auto& [host, port] = connection;
  auto route = policy::parse_git_route(host, grant.kind_of(host), head.method, head.target);
  if (route) return policy::UseGit{*std::move(route), port};
  const auto method = policy::method_from_name(head.method);
  auto path = policy::HttpPath::parse(head.target);
  if (!method || !path) return connection;
  return policy::UseHttp{policy::Scheme::Https, host, port, *method, *std::move(path)};
}

}  // namespace

bool Front::is_told_in_tls(const policy::HostName& host, const Target& target, Reason reason) {
  // Who named another host before is told of that, and by an alert.
  if (target.host && *target.host != host) return false;
  const bool by_name = reason == Reason::PolicyEmpty || reason == Reason::HostNotAllowed ||
                       reason == Reason::DeniedByRule || reason == Reason::PortNotAllowed;
  return by_name && session_.usage().requests.take(net::Clock::now());
}

net::Task<> Front::refuse_in_tls(egress::PeekedHello peeked, Target target) {
  const policy::Connect asked{peeked.hello.host, target.port};
  const auto decision = policy::decide(session_.grant(), asked);
  audit::Event event = event_of({.entry = target.entry,
                                 .destination = std::move(target.destination),
                                 .scheme = policy::Scheme::Https,
                                 .port = asked.port,
                                 .host = asked.host});
  if (decision.rule) event.rule = policy::source_of(session_.grant(), *decision.rule).str();
  const std::string id = event.request;
  // Before the client is told anything: a session may end as soon as its client knows.
  co_await session_.recorder().refuse(std::move(event), {decision.reason, ""});
  const auto still_the_same = [&asked](const policy::HostName& host) -> Status {
    if (host == asked.host) return {};
    return fail(Reason::SniMismatch, "the ClientHello has a second reading");
  };
  auto tls = co_await session_.interceptor.accept(std::move(peeked), still_the_same);
  if (!tls) co_return;
  http::Connection connection(*tls->stream, asked.port, session_.grant().timeouts.request_head);
  const auto head = co_await connection.next_request();
  const bool readable = head && *head;
  if (readable || !head) {
    const policy::Operation wanted =
        readable ? asked_for(session_.grant(), asked, **head) : policy::Operation(asked);
    connection.close_after_response();
    static_cast<void>(co_await http::refuse(
        connection,
        {decision.reason, asked.host.str() + forward::how_to_allow(decision.reason, wanted), id}));
  }
  co_await connection.finish();
}

}  // namespace sallyport::gate
