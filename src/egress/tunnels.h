// Connections that are passed on as they are: spliced TLS, and the ports of [[tcp]]. Each leaves two lines in
// the audit log, one before anything is dialled and one at its end.
#pragma once

#include <cstdint>
#include <string>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/fd.h"
#include "forward/live.h"
#include "forward/usage.h"
#include "net/dial.h"
#include "net/task.h"
#include "net/tunnel.h"
#include "net/worker.h"
#include "policy/grant.h"

namespace sallyport::egress {

// A connection that was judged.
struct TunnelRequest {
  audit::Entry entry = audit::Entry::Tls;
  std::string destination;  // the address and port that the client addressed
  policy::HostName host;
  std::uint16_t port;
  policy::Carriage carriage = policy::Carriage::Splice;  // or Raw
  std::string rule;                                      // where the rule stands
};

class Tunnels {
 public:
  // All are borrowed and outlive this.
  Tunnels(net::Worker& worker, net::Resolver& resolver, const policy::Grant& grant, audit::Recorder& recorder,
          forward::Usage& usage, forward::Live& live)
      : worker_(worker),
        resolver_(resolver),
        grant_(grant),
        recorder_(recorder),
        usage_(usage),
        live_(live) {}
  Tunnels(const Tunnels&) = delete;
  Tunnels& operator=(const Tunnels&) = delete;

  // Until the connection has ended; revoked ones are reset at once. `early` was read from the client already,
  // and goes upstream first.
  net::Task<> carry(TunnelRequest request, Fd client, std::string early);

 private:
  net::Task<> refuse(audit::Event event, Fd client, Error error);
  net::Task<Result<net::Dialled>> dial(policy::HostName host, std::uint16_t port, Slots::Slot making);
  net::Task<> carry_recorded(audit::Event event, policy::HostName host, forward::Live::Entry& live, Fd client,
                             std::string early, Slots::Slot making);
  net::Task<> move(net::Tunnel& tunnel, forward::Live::Entry& live, std::string early, audit::Event& event);
  net::TunnelLimits limits() const;

  net::Worker& worker_;
  net::Resolver& resolver_;
  const policy::Grant& grant_;
  audit::Recorder& recorder_;
  forward::Usage& usage_;
  forward::Live& live_;
  net::PipePool pipes_;
};

}  // namespace sallyport::egress
