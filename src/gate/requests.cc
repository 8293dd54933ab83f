#include "gate/requests.h"

#include <utility>

#include "base/random.h"
#include "http/connection.h"
#include "http/reply.h"

namespace sallyport::gate {
namespace {

constexpr std::size_t kRequestIdBytes = 8;

// The line of a request that could not even be read.
audit::Event unreadable(const git::ClientSide& client, Error error) {
  audit::Event event;
  event.kind = audit::Kind::Refused;
  event.request = random_hex(kRequestIdBytes);
  event.entry = client.entry;
  event.scheme = "https";
  event.destination = client.destination;
  event.host = client.host.str();
  event.port = client.port;
  event.reason = error.reason;
  event.detail = std::move(error.detail);
  return event;
}

}  // namespace

net::Task<> serve_requests(const git::Context& context, git::ClientSide client, net::Stream& stream) {
  http::Connection connection(stream, client.port, context.grant.timeouts.request_head);
  while (true) {
    auto head = co_await connection.next_request();
    if (!head) {
      const Reason reason = head.error().reason;
      audit::Event event = unreadable(client, std::move(head).error());
      const std::string id = event.request;
      // Refused it is whether or not the line could be written.
      static_cast<void>(co_await context.recorder.record(std::move(event)));
      static_cast<void>(co_await http::refuse(connection, {reason, "", id}));
      break;
    }
    if (!*head) break;
    const auto fate = co_await git::serve(context, client, connection, **std::move(head));
    if (fate == git::Fate::Close) break;
  }
  co_await connection.finish();
}

}  // namespace sallyport::gate
