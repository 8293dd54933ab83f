#include "os/nflog.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/firewall.h"
#include "os/netlink.h"
#include "os/unix_socket.h"

namespace sallyport::os {

namespace {

// One datagram: the kernel flushes after each packet, whose copy is short.
constexpr std::size_t kDatagramBytes = 16 * 1024;

struct ConfigRequest {
  alignas(nlmsghdr) char buffer[256] = {};
  nlmsghdr* header = mnl_nlmsg_put_header(buffer);

  ConfigRequest() {
    header->nlmsg_type = (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG;
    auto* body = static_cast<nfgenmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg)));
    body->nfgen_family = AF_UNSPEC;
    body->version = NFNETLINK_V0;
    body->res_id = htons(kNflogGroup);
  }
};

// A length-prefixed record inside `bytes`: the head (of type Head, with its length in a field) and what is
// left of it; advances `bytes` over it. nullopt at the end, and when the length lies.
template <class Head>
struct Record {
  Head head;
  std::string_view body;
};
template <class Head, class Length>
std::optional<Record<Head>> next_record(std::string_view& bytes, Length Head::* length_field) {
  Head head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::size_t length = head.*length_field;
  if (length < sizeof head || length > bytes.size()) return std::nullopt;
  Record<Head> record{head, bytes.substr(sizeof head, length - sizeof head)};
  // Both kinds of records are padded to four bytes; the last one need not be.
  bytes.remove_prefix(std::min(bytes.size(), (length + 3) & ~std::size_t{3}));
  return record;
}

std::uint8_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<std::uint8_t>(bytes[index]);
}

bool has_ports(std::uint8_t protocol) {
  return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
         protocol == IPPROTO_DCCP || protocol == IPPROTO_UDPLITE;
}

// The destination port, the second 16-bit number of all protocols that have ports; 0 when it was cut off.
std::uint16_t port_behind(std::string_view packet, std::size_t head_bytes) {
  if (packet.size() < head_bytes + 4) return 0;
  return static_cast<std::uint16_t>(byte_at(packet, head_bytes + 2) << 8 | byte_at(packet, head_bytes + 3));
}

bool parse_v4(std::string_view packet, RefusedPacket& report) {
  constexpr std::size_t kShortestHead = 20;  // RFC 791, 3.1
  if (packet.size() < kShortestHead) return false;
  const std::size_t head_bytes = std::size_t{4} * (byte_at(packet, 0) & 0x0F);
  if (head_bytes < kShortestHead) return false;
  const bool first_fragment = ((byte_at(packet, 6) & 0x1F) | byte_at(packet, 7)) == 0;
  report.protocol = byte_at(packet, 9);
  report.destination = Endpoint{};
  std::memcpy(report.destination.address.data(), packet.data() + 16, 4);
  if (first_fragment && has_ports(report.protocol)) report.destination.port = port_behind(packet, head_bytes);
  return true;
}

// Extension headers are not followed: the report then names the first of them, and no port.
bool parse_v6(std::string_view packet, RefusedPacket& report) {
  constexpr std::size_t kHead = 40;  // RFC 8200, 3
  if (packet.size() < kHead) return false;
  report.protocol = byte_at(packet, 6);
  report.destination = Endpoint{.family = AF_INET6};
  std::memcpy(report.destination.address.data(), packet.data() + 24, 16);
  if (has_ports(report.protocol)) report.destination.port = port_behind(packet, kHead);
  return true;
}

std::optional<RefusedPacket> parse_report(std::string_view message) {
  if (message.size() < sizeof(nfgenmsg)) return std::nullopt;
  message.remove_prefix(sizeof(nfgenmsg));
  while (const auto attribute = next_record(message, &nlattr::nla_len)) {
    if ((attribute->head.nla_type & NLA_TYPE_MASK) != NFULA_PAYLOAD) continue;
    RefusedPacket report;
    if (!parse_packet_head(attribute->body, report)) return std::nullopt;
    return report;
  }
  return std::nullopt;
}

}  // namespace

Result<Fd> open_nflog() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!socket) return fail_errno(Reason::Internal, "socket NETLINK_NETFILTER");

  ConfigRequest bind;
  const nfulnl_msg_config_cmd command{NFULNL_CFG_CMD_BIND};
  mnl_attr_put(bind.header, NFULA_CFG_CMD, sizeof command, &command);
  if (auto done = netlink_request(socket.get(), bind.header, "nflog: bind"); !done) {
    return fail(std::move(done));
  }

  ConfigRequest mode;
  nfulnl_msg_config_mode copy{};
  copy.copy_range = htonl(kNflogCopyBytes);
  copy.copy_mode = NFULNL_COPY_PACKET;
  mnl_attr_put(mode.header, NFULA_CFG_MODE, sizeof copy, &copy);
  mnl_attr_put_u32(mode.header, NFULA_CFG_QTHRESH, htonl(1));  // each packet at once
  if (auto done = netlink_request(socket.get(), mode.header, "nflog: mode"); !done) {
    return fail(std::move(done));
  }
  if (auto done = set_nonblocking(socket.get()); !done) return fail(std::move(done));
  return socket;
}

Result<std::vector<RefusedPacket>> read_nflog(int socket) {
  std::vector<RefusedPacket> reports;
  std::string datagram(kDatagramBytes, '\0');
  while (reports.size() < kMaxReportsPerRead) {
    const ssize_t got = ::recv(socket, datagram.data(), datagram.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ENOBUFS) continue;  // some were lost: there are more of them than anyone reads
    if (got < 0 && would_block(errno)) break;
    if (got < 0) return fail_errno(Reason::Internal, "nflog: receive");
    for (const RefusedPacket& report :
         parse_nflog(std::string_view(datagram).substr(0, static_cast<std::size_t>(got)))) {
      reports.push_back(report);
    }
  }
  return reports;
}

bool parse_packet_head(std::string_view packet, RefusedPacket& report) {
  if (packet.empty()) return false;
  const int version = byte_at(packet, 0) >> 4;
  if (version == 4) return parse_v4(packet, report);
  if (version == 6) return parse_v6(packet, report);
  return false;
}

std::vector<RefusedPacket> parse_nflog(std::string_view datagram) {
  std::vector<RefusedPacket> reports;
  while (const auto message = next_record(datagram, &nlmsghdr::nlmsg_len)) {
    if (message->head.nlmsg_type != ((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET)) continue;
    if (const auto report = parse_report(message->body)) reports.push_back(*report);
  }
  return reports;
}

}  // namespace sallyport::os
