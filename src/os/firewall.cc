#include "os/firewall.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <nftables/libnftables.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "base/fd.h"
#include "base/text.h"

namespace sallyport::os {

namespace {

struct Free {
  void operator()(nft_ctx* context) const { ::nft_ctx_free(context); }
};

// Priorities are numbers: the names of Debian 12's nft differ between hooks. Chains see a packet in the order
// raw_out (-300), connection tracking (-200), nat_out (-100), filter_out (0).
//
// raw_out: the sandbox's traffic with itself needs no record; what talks to or from the door does, or the
// answers of a redirected connection whose client is bound to 127.0.0.1 would keep the door's address. What
// would make a record is counted before there is one; the door's own datagrams too, as any client of the
// sandbox can choose the door's port for itself. Protocols that have no door (SCTP, any raw one) get no
// record at all: the kernel remembers some of them for days, and they are refused below.
//
// filter_out: replies first, as the door's own datagrams go to addresses that are not loopback. Then only
// what was redirected, and loopback. The rest is reported, at a rate that the audit log can bear, and
// refused.
constexpr std::string_view kRules = R"(
table inet sallyport {{
  chain raw_out {{
    type filter hook output priority -300; policy accept;
    meta l4proto != {{ tcp, udp, icmp, ipv6-icmp }} notrack accept
    tcp dport {tcp} goto limited
    tcp sport {tcp} goto limited
    udp dport {udp} goto limited
    udp sport {udp} goto limited
    oifname "lo" ip saddr 127.0.0.0/8 ip daddr 127.0.0.0/8 notrack accept
    oifname "lo" ip6 saddr ::1 ip6 daddr ::1 notrack accept
    goto limited
  }}
  chain limited {{
    tcp flags & (fin | syn | rst | ack) != syn accept
    {limit}
  }}
  chain nat_out {{
    type nat hook output priority -100; policy accept;
    ip daddr 127.0.0.0/8 return
    ip6 daddr ::1 return
    meta l4proto tcp redirect to :{tcp}
    udp dport 53 redirect to :{udp}
  }}
  chain filter_out {{
    type filter hook output priority 0; policy drop;
    oifname != "lo" drop
    ct direction reply accept
    ct status dnat accept
    ip daddr 127.0.0.0/8 accept
    ip6 daddr ::1 accept
    limit rate 50/second burst 50 packets log group {group}
    meta l4proto tcp reject with tcp reset
    reject
  }}
  chain filter_in {{
    type filter hook input priority 0; policy accept;
    iifname != "lo" drop
  }}
  chain filter_forward {{
    type filter hook forward priority 0; policy drop;
  }}
}}
)";

Status set_conntrack(std::string_view name, int value) {
  const std::string path = "/proc/sys/net/netfilter/nf_conntrack_" + std::string(name);
  const std::string text = std::to_string(value);
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file && ::write(file.get(), text.data(), text.size()) > 0) return {};
  return fail_errno(Reason::Internal, path);
}

}  // namespace

std::string ruleset(DoorPorts doors, const std::optional<Rate>& new_connections) {
  std::string limit = "# as many as come";
  if (new_connections) {
    limit = fmt::format("limit rate over {}/second burst {} packets drop", new_connections->amount,
                        new_connections->burst);
  }
  return fmt::format(fmt::runtime(kRules), fmt::arg("tcp", doors.tcp), fmt::arg("udp", doors.udp),
                     fmt::arg("limit", limit), fmt::arg("group", kNflogGroup));
}

Status load_ruleset(const std::string& rules) {
  const std::unique_ptr<nft_ctx, Free> context(::nft_ctx_new(NFT_CTX_DEFAULT));
  if (!context) return fail(Reason::Internal, "nftables: no context");
  if (::nft_ctx_buffer_error(context.get()) != 0 || ::nft_ctx_buffer_output(context.get()) != 0) {
    return fail(Reason::Internal, "nftables: no error buffer");
  }
  if (::nft_run_cmd_from_buffer(context.get(), rules.c_str()) == 0) return {};
  const std::string_view words = ::nft_ctx_get_error_buffer(context.get());
  return fail(Reason::Internal, "nftables: " + escaped(words.substr(0, words.find('\n'))));
}

Status limit_connection_records() {
  // All that a record can wait for but tcp_timeout_established, which is the doors' open connections'.
  constexpr std::string_view kTimeouts[] = {
      "tcp_timeout_syn_sent", "tcp_timeout_syn_recv", "tcp_timeout_fin_wait",  "tcp_timeout_close_wait",
      "tcp_timeout_last_ack", "tcp_timeout_close",    "tcp_timeout_time_wait", "udp_timeout",
      "udp_timeout_stream",   "icmp_timeout",         "icmpv6_timeout"};
  for (const std::string_view timeout : kTimeouts) {
    if (auto done = set_conntrack(timeout, kRecordSeconds); !done) return done;
  }
  // Else any later packet of a connection whose record is gone would make one, for five minutes, uncounted.
  return set_conntrack("tcp_loose", 0);
}

}  // namespace sallyport::os
