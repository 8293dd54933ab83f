// From a name to a connected socket: resolve once, classify every answer, connect to the very addresses that
// were checked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/stream.h"
#include "policy/grant.h"

namespace sallyport::net {

inline constexpr Clock::duration kResolveLimit = std::chrono::seconds(5);
inline constexpr std::size_t kMaxResolvedAddresses = 256;  // a reply over TCP could have thousands
inline constexpr std::size_t kMaxDialledAddresses = 16;
inline constexpr std::size_t kMaxCnames =
    8;  // from the name that was asked for to the one with the addresses
// Names that one resolver asks for at once, whether or not somebody still waits for the answer. As many as a
// session may have connections.
inline constexpr std::size_t kMaxQuestions = 1024;

// c-ares on the worker's loop. Reads resolv.conf when made (before confinement), never hosts files, never
// getaddrinfo.
class Resolver {
 public:
  // `servers` instead of resolv.conf's, if there are any; at port 53 unless they say another. Each is asked
  // when those before it are silent or fail.
  static Result<std::unique_ptr<Resolver>> make(Worker& worker,
                                                const std::vector<policy::PinnedAddress>& servers = {},
                                                Clock::duration limit = kResolveLimit);
  virtual ~Resolver() = default;
  // These from now on, in the same way. Questions under way may fail when it is a change.
  virtual void use(const std::vector<policy::PinnedAddress>& servers) = 0;
  // UpstreamUnresolved, UpstreamTimeout or Overloaded; one to kMaxResolvedAddresses otherwise. All of them,
  // in no order: whoever dials checks them all. Nothing is remembered.
  virtual Task<Result<std::vector<policy::IpAddress>>> resolve(policy::HostName host) = 0;
};

// AddressDenied when one of the addresses may not be dialled: all of them are good, or none. A name that
// answers with one address of ours among others is no accident.
Status check_addresses(const policy::HostName& name, const std::vector<policy::IpAddress>& addresses,
                       const policy::UpstreamHost& host);

// The first kMaxDialledAddresses to try: the families take turns, IPv6 first (RFC 8305, section 4).
std::vector<policy::IpAddress> in_dialling_order(const std::vector<policy::IpAddress>& addresses);

struct Dialled {
  Fd socket;
  policy::IpAddress address;
  std::uint16_t port;
};

// UpstreamUnresolved; AddressDenied when one of the answers may not be dialled (naming it);
// UpstreamUnreachable; UpstreamTimeout (`connect_limit` covers all tries together; resolving has its own
// limit). A pinned address in `host` is dialled as it is, and nothing is resolved.
Task<Result<Dialled>> dial(Worker& worker, Resolver& resolver, policy::HostName name, std::uint16_t port,
                           const policy::UpstreamHost& host,
                           Clock::duration connect_limit = policy::Timeouts{}.connect);

}  // namespace sallyport::net
