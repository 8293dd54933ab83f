#include "forward/served.h"

#include <chrono>

#include "forward/transfer.h"

namespace sallyport::forward {

audit::Event event_of(const ClientSide& client, const http::RequestHead& head) {
  audit::Event event;
  event.request = audit::new_request_id();
  event.entry = client.entry;
  event.destination = client.destination;
  event.scheme = name(client.scheme);
  event.host = client.host.str();
  event.port = client.port;
  event.method = head.method;
  event.path = head.target;
  return event;
}

audit::Event end_of(const audit::Event& event, const Outcome& outcome, net::Clock::time_point started) {
  audit::Event end = event;
  end.kind = audit::Kind::End;
  end.refs.clear();
  end.reason = outcome.error.reason;
  if (!outcome.error.detail.empty()) end.detail = outcome.error.detail;
  end.status = outcome.upstream_status;
  end.bytes_in = outcome.bytes_in;
  end.bytes_out = outcome.bytes_out;
  end.duration = std::chrono::duration_cast<std::chrono::microseconds>(net::Clock::now() - started);
  return end;
}

std::string how_to_allow(Reason reason, const policy::Operation& operation) {
  if (reason == Reason::DeniedByRule) return "";
  const std::string line = policy::line_to_add(operation);
  return line.empty() ? "" : "\nWhoever runs this sandbox can allow it in its policy:\n" + line;
}

}  // namespace sallyport::forward
