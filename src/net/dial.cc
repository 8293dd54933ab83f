#include "net/dial.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "net/connect_race.h"
#include "os/endpoint.h"

namespace sallyport::net {
namespace {

os::Endpoint endpoint(const policy::IpAddress& address, std::uint16_t port) {
  const bool v4 = address.family == policy::Family::V4;
  return {
      .family = static_cast<sa_family_t>(v4 ? AF_INET : AF_INET6), .address = address.bytes, .port = port};
}

policy::IpAddress address_of(const os::Endpoint& there) {
  return {.family = there.family == AF_INET ? policy::Family::V4 : policy::Family::V6,
          .bytes = there.address};
}

}  // namespace

Status check_addresses(const policy::HostName& name, const std::vector<policy::IpAddress>& addresses,
                       const policy::UpstreamHost& host) {
  for (const policy::IpAddress& address : addresses) {
    const policy::AddressClass found = policy::classify(address);
    const bool fits = found == policy::AddressClass::Global ||
                      (found == policy::AddressClass::Private && host.allow_private);
    if (!fits) return fail(Reason::AddressDenied, name.str() + " resolves to " + address.str());
  }
  return {};
}

std::vector<policy::IpAddress> in_dialling_order(const std::vector<policy::IpAddress>& addresses) {
  std::vector<policy::IpAddress> v6;
  std::vector<policy::IpAddress> v4;
  for (const policy::IpAddress& address : addresses) {
    (address.family == policy::Family::V6 ? v6 : v4).push_back(address);
  }
  std::vector<policy::IpAddress> ordered;
  for (std::size_t i = 0; i < std::max(v6.size(), v4.size()); ++i) {
    if (i < v6.size()) ordered.push_back(v6[i]);
    if (i < v4.size()) ordered.push_back(v4[i]);
  }
  if (ordered.size() > kMaxDialledAddresses) ordered.resize(kMaxDialledAddresses);
  return ordered;
}

Task<Result<Dialled>> dial(Worker& worker, Resolver& resolver, policy::HostName name, std::uint16_t port,
                           const policy::UpstreamHost& host, Clock::duration connect_limit) {
  std::vector<policy::IpAddress> addresses;
  if (host.address) {
    addresses.push_back(host.address->address);
    port = host.address->port.value_or(port);
  } else {
    auto resolved = co_await resolver.resolve(name);
    if (!resolved) co_return fail(std::move(resolved));
    if (auto status = check_addresses(name, *resolved, host); !status) co_return fail(std::move(status));
    addresses = in_dialling_order(*resolved);
  }

  std::vector<os::Endpoint> endpoints;
  for (const policy::IpAddress& address : addresses) endpoints.push_back(endpoint(address, port));
  auto connected = co_await connect_first(worker, std::move(endpoints), connect_limit);
  if (!connected) {
    co_return fail(connected.error().reason, name.str() + " at " + connected.error().detail);
  }
  co_return Dialled{std::move(connected->socket), address_of(connected->peer), port};
}

}  // namespace sallyport::net
