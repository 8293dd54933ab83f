#include "os/netlink.h"

#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

namespace sallyport::os {

namespace {

// In every network namespace (LOOPBACK_IFINDEX in the kernel).
constexpr int kLoopbackIndex = 1;
constexpr std::uint8_t kLoopbackPrefix = 8;
// An acknowledgement holds the request's head and the kernel's words: they fit by far.
constexpr std::size_t kReplyBytes = 8192;

struct Request {
  alignas(nlmsghdr) char buffer[1024] = {};
  nlmsghdr* header = nullptr;

  Request(std::uint16_t type, std::uint16_t flags) : header(mnl_nlmsg_put_header(buffer)) {
    header->nlmsg_type = type;
    header->nlmsg_flags = flags;
  }
  template <class Body>
  Body& body() {
    return *static_cast<Body*>(mnl_nlmsg_put_extra_header(header, sizeof(Body)));
  }
};

std::size_t address_bytes(sa_family_t family) {
  return family == AF_INET6 ? 16 : 4;
}

}  // namespace

Status netlink_request(int socket, nlmsghdr* request, const char* what) {
  request->nlmsg_flags = static_cast<std::uint16_t>(request->nlmsg_flags | NLM_F_REQUEST | NLM_F_ACK);
  request->nlmsg_seq = 1;
  if (::send(socket, request, request->nlmsg_len, 0) < 0) return fail_errno(Reason::Internal, what);
  alignas(nlmsghdr) char reply[kReplyBytes];
  ssize_t got = -1;
  while ((got = ::recv(socket, reply, sizeof reply, 0)) < 0 && errno == EINTR) {
  }
  if (got < 0) return fail_errno(Reason::Internal, what);
  const auto* header = reinterpret_cast<const nlmsghdr*>(reply);
  if (!mnl_nlmsg_ok(header, static_cast<int>(got)) || header->nlmsg_type != NLMSG_ERROR ||
      mnl_nlmsg_get_payload_len(header) < sizeof(nlmsgerr)) {
    return fail(Reason::Internal, std::string(what) + ": unexpected answer of the kernel");
  }
  const auto* verdict = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(header));
  if (verdict->error == 0) return {};
  errno = -verdict->error;
  return fail_errno(Reason::Internal, what);
}

namespace {

Status set_link(int route_socket, int index, unsigned flags, const char* what) {
  Request request(RTM_NEWLINK, 0);
  auto& link = request.body<ifinfomsg>();
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = index;
  link.ifi_change = IFF_UP;
  link.ifi_flags = flags;
  return netlink_request(route_socket, request.header, what);
}

}  // namespace

Status raise_loopback(int route_socket) {
  return set_link(route_socket, kLoopbackIndex, IFF_UP, "raise lo");
}

Status lower_loopback(int route_socket) {
  Request request(RTM_DELADDR, 0);
  auto& entry = request.body<ifaddrmsg>();
  entry.ifa_family = AF_INET;
  entry.ifa_prefixlen = kLoopbackPrefix;
  entry.ifa_index = kLoopbackIndex;
  mnl_attr_put_u32(request.header, IFA_LOCAL, htonl(INADDR_LOOPBACK));
  if (auto done = netlink_request(route_socket, request.header, "take 127.0.0.1 from lo"); !done) return done;
  return set_link(route_socket, kLoopbackIndex, 0, "lower lo");
}

Status lower_link(int route_socket, int index) {
  return set_link(route_socket, index, 0, "lower a device");
}

Status add_loopback_address(int route_socket, const Endpoint& address) {
  const std::size_t bytes = address_bytes(address.family);
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
  auto& entry = request.body<ifaddrmsg>();
  entry.ifa_family = static_cast<std::uint8_t>(address.family);
  entry.ifa_prefixlen = static_cast<std::uint8_t>(bytes * 8);
  entry.ifa_scope = RT_SCOPE_UNIVERSE;
  entry.ifa_index = kLoopbackIndex;
  mnl_attr_put(request.header, IFA_LOCAL, bytes, address.address.data());
  mnl_attr_put(request.header, IFA_ADDRESS, bytes, address.address.data());
  return netlink_request(route_socket, request.header, "add an address to lo");
}

Status route_everything_to_loopback(int route_socket, sa_family_t family) {
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  auto& route = request.body<rtmsg>();
  route.rtm_family = static_cast<std::uint8_t>(family);
  route.rtm_dst_len = 0;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_STATIC;
  route.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_LOCAL;
  mnl_attr_put_u32(request.header, RTA_OIF, kLoopbackIndex);
  return netlink_request(route_socket, request.header, "route every address to lo");
}

}  // namespace sallyport::os
