#include "os/links.h"

#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/text.h"

// With the kernel's own macros, and not libmnl: sallyport-init, which is linked statically, asks too, and
// Debian has no static libmnl.
namespace sallyport::os {

namespace {

// More devices than this are not looked at one by one: it is not a sandbox's namespace.
constexpr std::size_t kMaxLinks = 1024;
// The kernel asks for another look when something changed in the middle of an answer.
constexpr int kMaxDumpAttempts = 5;
// Dumps come in pieces of at most 32 KiB.
constexpr std::size_t kDumpBytes = 32 * 1024;

constexpr std::array<std::string_view, 9> kInertDevices = {
    "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"};

enum class DumpEnd { Complete, Interrupted };

using OnMessage = std::function<Status(const nlmsghdr&)>;

// One received piece: true when it was the last. `state` becomes Interrupted when the kernel says so.
Result<bool> read_piece(const char* piece, std::size_t length, DumpEnd& state, const OnMessage& callback) {
  const auto* header = reinterpret_cast<const nlmsghdr*>(piece);
  for (; NLMSG_OK(header, length); header = NLMSG_NEXT(header, length)) {
    if ((header->nlmsg_flags & NLM_F_DUMP_INTR) != 0) state = DumpEnd::Interrupted;
    if (header->nlmsg_type == NLMSG_DONE) return true;
    if (header->nlmsg_type == NLMSG_ERROR) {
      return fail(Reason::Internal, "netlink: the kernel refused a dump");
    }
    if (auto done = callback(*header); !done) return fail(std::move(done));
  }
  return false;
}

Result<DumpEnd> dump(int socket, std::uint16_t type, const OnMessage& callback) {
  // Of any family: all zeros.
  struct {
    nlmsghdr header;
    union {
      ifinfomsg link;
      ifaddrmsg address;
    } body;
  } request{};
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.header.nlmsg_len = NLMSG_LENGTH(type == RTM_GETLINK ? sizeof(ifinfomsg) : sizeof(ifaddrmsg));
  if (::send(socket, &request, request.header.nlmsg_len, 0) < 0)
    return fail_errno(Reason::Internal, "netlink: send");

  DumpEnd state = DumpEnd::Complete;
  std::string piece(kDumpBytes, '\0');
  for (;;) {
    const ssize_t got = ::recv(socket, piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(Reason::Internal, "netlink: receive");
    auto last = read_piece(piece.data(), static_cast<std::size_t>(got), state, callback);
    if (!last) return fail(std::move(last));
    if (*last) return state;
  }
}

std::string name_of(const nlmsghdr& header, const ifinfomsg& body) {
  auto left = IFLA_PAYLOAD(&header);
  for (const rtattr* attribute = IFLA_RTA(&body); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type != IFLA_IFNAME) continue;
    const auto* name = static_cast<const char*>(RTA_DATA(attribute));
    return {name, ::strnlen(name, RTA_PAYLOAD(attribute))};
  }
  return "";
}

Status add_link(const nlmsghdr& header, std::vector<Link>& links) {
  if (header.nlmsg_type != RTM_NEWLINK) return {};
  if (NLMSG_PAYLOAD(&header, 0) < sizeof(ifinfomsg)) {
    return fail(Reason::Internal, "netlink: short link");
  }
  if (links.size() == kMaxLinks) return fail(Reason::Internal, "the namespace has over 1024 devices");
  const auto* body = static_cast<const ifinfomsg*>(NLMSG_DATA(&header));
  Link link;
  link.index = body->ifi_index;
  link.loopback = (body->ifi_flags & IFF_LOOPBACK) != 0;
  link.up = (body->ifi_flags & IFF_UP) != 0;
  link.name = name_of(header, *body);
  links.push_back(std::move(link));
  return {};
}

Status add_address(const nlmsghdr& header, std::vector<Link>& links) {
  if (header.nlmsg_type != RTM_NEWADDR) return {};
  if (NLMSG_PAYLOAD(&header, 0) < sizeof(ifaddrmsg)) {
    return fail(Reason::Internal, "netlink: short address");
  }
  const auto* body = static_cast<const ifaddrmsg*>(NLMSG_DATA(&header));
  const auto link = std::ranges::find(links, static_cast<int>(body->ifa_index),
                                      [](const Link& each) { return each.index; });
  // A device that came between the two dumps: the watch reports it.
  if (link != links.end()) ++link->addresses;
  return {};
}

}  // namespace

Result<Fd> open_route_socket(std::uint32_t groups) {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return fail_errno(Reason::Internal, "socket NETLINK_ROUTE");
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail_errno(Reason::Internal, "bind NETLINK_ROUTE");
  }
  return socket;
}

Result<std::vector<Link>> list_links(int route_socket) {
  for (int attempt = 0; attempt < kMaxDumpAttempts; ++attempt) {
    std::vector<Link> links;
    auto named = dump(route_socket, RTM_GETLINK, [&links](const nlmsghdr& m) { return add_link(m, links); });
    if (!named) return fail(std::move(named));
    auto addressed =
        dump(route_socket, RTM_GETADDR, [&links](const nlmsghdr& m) { return add_address(m, links); });
    if (!addressed) return fail(std::move(addressed));
    if (*named == DumpEnd::Complete && *addressed == DumpEnd::Complete) return links;
  }
  return fail(Reason::Internal, "the namespace's devices change all the time");
}

Status only_loopback(const std::vector<Link>& links) {
  bool found = false;
  for (const Link& link : links) {
    if (link.loopback && link.name == "lo") {
      found = true;
      continue;
    }
    const bool inert = std::ranges::find(kInertDevices, link.name) != kInertDevices.end();
    if (inert && !link.up && link.addresses == 0) continue;
    return fail(Reason::Internal, "the sandbox's network namespace holds the device \"" + escaped(link.name) +
                                      "\"" + (inert ? ", and it is in use" : ""));
  }
  if (!found) return fail(Reason::Internal, "the sandbox's network namespace has no loopback device");
  return {};
}

Status drain_link_events(int watch_socket) {
  char event[kDumpBytes];
  for (;;) {
    if (::recv(watch_socket, event, sizeof event, MSG_DONTWAIT) >= 0 || errno == EINTR) continue;
    // ENOBUFS: events were lost. The caller lists the links in any case.
    if (errno == ENOBUFS) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return fail_errno(Reason::Internal, "netlink: receive");
  }
}

}  // namespace sallyport::os
