// Any bytes as one connection, from the client to the bytes for the upstream, by every way that HTTP may
// come. What is forwarded is what was judged and recorded (gate/invariants.h), policy allows it still when
// the audit line alone is judged anew, and where the bytes were cut changes no request that is forwarded. (It
// may change which of two reasons refuses one and, since a refusal does not wait for a body that is still to
// come, whether the connection goes on.) A CONNECT is given to a whole front: nothing is opened or looked up
// without a line.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "gate/egress_grant.h"
#include "gate/invariants.h"
#include "gate/whole_front.h"

using namespace sallyport;
using namespace sallyport::gate::testing;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

struct Way {
  const policy::Grant& grant;
  Arrival arrival;
};

const std::vector<Way>& ways() {
  static const policy::Grant kGit = forge_grant();
  static const policy::Grant kEgress = egress_grant();
  static const std::vector<Way> kWays{{kGit, under_tls()},
                                      {kEgress, under_tls()},
                                      {kEgress, in_clear()},
                                      {kEgress, in_clear_to_anybody()},
                                      {kEgress, at_the_proxy()}};
  return kWays;
}

bool is_allowed(const policy::Grant& grant, std::string_view scheme, std::string_view host,
                std::uint16_t port, std::string_view method, std::string_view target) {
  const auto name = policy::HostName::parse(host);
  const auto verb = policy::method_from_name(method);
  auto path = policy::HttpPath::parse(target);
  if (!name || !verb || !path) return false;
  if (path->is_git()) return grant.git.names(*name);  // the vault and its own tests judge those anew
  const auto spoken = scheme == "https" ? policy::Scheme::Https : policy::Scheme::Http;
  return policy::decide(grant, policy::UseHttp{spoken, *name, port, *verb, *std::move(path)}).allowed() ||
         (target.starts_with("/chat") && *verb == policy::Method::Get);  // as a WebSocket
}

bool asks_to_connect(std::string_view bytes, const Way& way) {
  const Verdict whole = serve_bytes({std::string(bytes)}, way.grant, way.arrival);
  require(broken_invariant(whole).empty());
  for (const auto& judged : whole.judged) {
    const std::size_t colon = judged.origin.rfind(':');
    const std::size_t host = judged.origin.find("://") + 3;
    require(is_allowed(way.grant, judged.origin.substr(0, host - 3), judged.origin.substr(host, colon - host),
                       way.arrival.port(), judged.method, judged.target));
  }
  if (bytes.size() >= 2) {
    const std::size_t half = bytes.size() / 2;
    const Verdict cut = serve_bytes({std::string(bytes.substr(0, half)), std::string(bytes.substr(half))},
                                    way.grant, way.arrival);
    require(broken_invariant(cut).empty());
    for (std::size_t i = 0; i < std::min(cut.sent.size(), whole.sent.size()); ++i) {
      require(head_of(cut.sent[i].bytes) == head_of(whole.sent[i].bytes));
    }
  }
  return whole.ended_by_connect;
}

void serve_connect(const std::string& bytes) {
  static WholeFront front(egress_grant());
  const Served served = front.serve(kProxyDoor, {bytes});
  require(served.lookups == 0);
  const auto begun = std::ranges::count(served.events, audit::Kind::Begin, &audit::Event::kind);
  require(served.opened == begun);
  for (const audit::Event& event : served.events) {
    if (event.kind != audit::Kind::Begin) continue;
    require(is_allowed(front.grant(), event.scheme, event.host, event.port, event.method, event.path));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const Way& way : ways()) {
    if (asks_to_connect(bytes, way)) serve_connect(bytes);
  }
  return 0;
}
