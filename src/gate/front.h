// What becomes of one connection of the sandbox: by where it was going (the kernel says so) and by what it
// then speaks. Whatever the outcome, it leaves exactly one line in the audit log, or one for each request.
//
//   the gateway's own door          refused (DoorAddressed)
//   port 53 of any address          DNS
//   port 3128 of 198.18.0.1         an explicit proxy's requests
//   a name's address                what the policy says of name and port: TLS that is inspected or spliced,
//                                   HTTP in the clear, or whatever is spoken there
//   port 443 of any other address   TLS; the SNI's host is judged
//   port 80 of any other address    HTTP; each request's Host is judged
//   any other                       refused (IpLiteral)
//
// Any address does for a name that is judged: the name is what is dialled.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "audit/recorder.h"
#include "base/fd.h"
#include "dns/server.h"
#include "dns/synthetic.h"
#include "egress/hello_peek.h"
#include "egress/intercept.h"
#include "gate/requests.h"
#include "net/stream.h"
#include "net/task.h"
#include "net/worker.h"
#include "os/endpoint.h"
#include "policy/decide.h"

namespace sallyport::gate {

inline constexpr std::chrono::seconds kProbeLimit{5};

// What a session's connections have in common. All of it outlives the front.
struct Session {
  net::Worker& worker;
  const GatewaysInForce& in_force;
  dns::SyntheticAddresses& addresses;
  dns::Server& dns;
  egress::Interceptor& interceptor;

  // Until the next wait.
  const policy::Grant& grant() const { return in_force->git.grant; }
  audit::Recorder& recorder() const { return in_force->git.recorder; }
  forward::Usage& usage() const { return in_force->usage; }
};

// Where a connection is going, as far as that is known before its first byte.
struct Target {
  audit::Entry entry = audit::Entry::None;
  std::string destination;  // for the audit log
  std::uint16_t port = 0;
  // That the client named, by the address that stands for it or in a CONNECT: nothing that comes later may
  // name another.
  std::optional<policy::HostName> host;
};

// Pre-flight asks whether what answers in the sandbox is this very gate. Both lines end in a newline.
struct Probe {
  std::string probe_line;
  std::string door_line;
};

class Front {
 public:
  explicit Front(const Session& session) : session_(session) {}
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // While armed, before the workload runs, every connection is a probe: one that opens with probe_line is
  // answered with door_line (without an audit line), any other is refused.
  void arm(std::optional<Probe> probe) { probe_ = std::move(probe); }

  // A new connection, non-blocking, that was going to `destination`; nullopt: to the door itself. Refused
  // ones are reset, so that clients fail at once.
  net::Task<> serve(Fd connection, std::optional<os::Endpoint> destination);

  // A new connection of which is known by other means what is spoken on it. `early` was read from it already.
  net::Task<> serve_tls(Fd connection, std::string early, Target target);
  net::Task<> serve_plain_http(Fd connection, std::string early, Target target);
  net::Task<> serve_proxy(Fd connection, Target target);

  // Of a connection that cannot be served at all.
  net::Task<> refuse(Fd connection, std::string destination, Error error);

 private:
  net::Task<> serve_probe(Fd connection, os::Endpoint destination);
  // To the address of a name.
  net::Task<> serve_name(Fd connection, Target target);
  net::Task<> serve_inspected(egress::PeekedHello peeked, Target target);
  // As it is: spliced TLS, and what [[tcp]] opens. At once behind the decision.
  net::Task<> carry(Fd connection, std::string early, Target target, policy::Decision decision);
  net::Task<> serve_connect(http::RequestHead head, std::unique_ptr<net::Stream> stream,
                            http::Connection& connection, Target target);

  // Behind the answer to a CONNECT.
  net::Task<> serve_raw(Fd connection, std::string early, Target target);
  net::Task<> refuse_connect(http::RequestHead head, http::Connection& connection, Target target,
                             policy::Decision decision);
  // A tunnel is a request as any other; behind a CONNECT it was counted already.
  bool may_begin_tunnel(const Target& target) const;

  // What is refused because of its name can be told to a client in HTTP, under a certificate of ours, as long
  // as the session has requests left.
  bool is_told_in_tls(const policy::HostName& host, const Target& target, Reason reason);
  net::Task<> refuse_in_tls(egress::PeekedHello peeked, Target target);
  net::Task<> refuse_address(Fd connection, Target target, Reason reason);
  net::Task<> refuse_handshake(Target target, egress::HandshakeRefusal refusal);
  // How to go on with a connection to `host` and the target's port; or why not.
  Result<policy::Decision> judge(const policy::HostName& host, const Target& target) const;

  Session session_;
  std::optional<Probe> probe_;
};

}  // namespace sallyport::gate
