// A sandbox's network: a user and a network namespace that hold nothing but loopback, and the doors in them.
//
// The caller (the warden) never enters the namespaces itself: it may have threads, and a threaded process
// cannot setns() a user namespace. A one-shot helper, sallyport-netns, makes them, and sends descriptors
// back; or it enters a network namespace that a container engine made. There are two phases with the caller's
// probes between: first the namespaces with lo down and no route, where nothing can be reached; then, on
// demand, routes, rules and doors.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/endpoint.h"
#include "os/firewall.h"
#include "os/listener.h"
#include "os/process.h"
#include "os/spawn.h"

namespace sallyport::os {

// How long one phase may take before the helper is given up.
inline constexpr std::chrono::milliseconds kNamespaceTimeout{10'000};
// The address, beside 127.0.0.1, of lo in a sandbox, and its name server's.
inline constexpr char kSandboxAddress[] = "198.18.0.1";
// The explicit proxy's port there.
inline constexpr std::uint16_t kSandboxProxyPort = 3128;

// The door takes the first of these on which all its sockets can be bound. High, and of no known service: the
// sandbox's own servers can have every other port.
inline constexpr std::uint16_t kFirstDoorPort = 40443;
inline constexpr std::uint16_t kLastDoorPort = 40453;
// Without nftables: the ports that have a door.
inline constexpr std::uint16_t kDirectPorts[] = {443, 80, 53, kSandboxProxyPort};

struct Namespace {
  Fd user;                  // for setns()
  Fd net;                   // for setns()
  Fd link_query;            // NETLINK_ROUTE inside: for list_links()
  Fd link_watch;            // NETLINK_ROUTE inside, subscribed, non-blocking: for drain_link_events()
  std::optional<Fd> nflog;  // NETLINK_NETFILTER inside, non-blocking: for read_nflog()
};

struct Doors {
  DoorMode mode = DoorMode::Redirect;
  std::vector<Listener> listeners;
  // Why the mode is Direct: the words of nftables. The user must be told.
  std::string fallback_reason;
};

// Normally Redirect; Direct is for tests of the fallback and for hosts known to lack nftables.
enum class DoorWish { Redirect, Direct };

class NamespaceBuilder {
 public:
  struct Spec {
    std::string helper;         // path of sallyport-netns
    std::optional<Ids> become;  // needed when the caller is root: uid 0 is never mapped into a sandbox
    // Instead of new ones: this network namespace, and, unless it is ours, the user namespace that owns it.
    // Both are borrowed until start() returns. The helper keeps its rights, and `become` is not looked at.
    std::optional<int> join_net;
    std::optional<int> join_user;
  };

  // Starts the helper; it dies with the calling thread, or with this object.
  static Result<NamespaceBuilder> start(const Spec& spec);
  NamespaceBuilder(NamespaceBuilder&&) = default;
  NamespaceBuilder& operator=(NamespaceBuilder&&) = delete;
  ~NamespaceBuilder();

  // Phase A. The error names the switch of the host that forbids it, and the remedy. Once.
  Result<Namespace> namespaces();
  // Phase B; the helper has ended when this returns. Once, after namespaces().
  // `new_connections`: of the sandbox, in a second; nullopt: unlimited. Only rules hold it to that.
  Result<Doors> open_doors(DoorWish wish = DoorWish::Redirect,
                           const std::optional<Rate>& new_connections = kNewConnections);

 private:
  NamespaceBuilder(Child helper, Fd control) : helper_(std::move(helper)), control_(std::move(control)) {}

  Child helper_;
  Fd control_;
};

}  // namespace sallyport::os
