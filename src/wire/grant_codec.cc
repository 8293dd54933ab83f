#include "wire/grant_codec.h"

#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "wire/codec.h"
#include "wire/sealed.h"

namespace sallyport::wire {
namespace {

constexpr std::uint8_t kGrantVersion = 3;
constexpr std::size_t kMaxPatternBytes = 8192;  // a host and 20 segments of 255 bytes
constexpr std::size_t kMaxHostPatternBytes = policy::HostName::kMaxBytes + 2;  // "*." before it
constexpr std::size_t kMaxCredentialBytes = 256;     // a name in the operator's file
constexpr std::size_t kMaxSourceFileBytes = 4096;    // PATH_MAX
constexpr std::uint32_t kMaxSourceLine = 1U << 30U;  // fits an int; a file has at most a million bytes anyway

void put(Writer& out, const policy::PinnedAddress& pinned) {
  out.enumerator(pinned.address.family);
  for (const std::uint8_t byte : pinned.address.bytes) out.u8(byte);
  out.u16(pinned.port.value_or(0));
}

void put(Writer& out, const policy::UpstreamHost& host) {
  out.enumerator(host.kind);
  out.u8(host.address ? 1 : 0);
  if (host.address) put(out, *host.address);
  out.u8(host.allow_private ? 1 : 0);
  out.string(host.ca_pem);
}

policy::PinnedAddress get_address(Reader& in) {
  policy::PinnedAddress pinned;
  pinned.address.family = in.enumerator(policy::Family::V6);
  for (std::uint8_t& byte : pinned.address.bytes) byte = in.u8();
  if (pinned.address.family == policy::Family::V4) {
    for (std::size_t i = 4; i < pinned.address.bytes.size(); ++i) {
      if (pinned.address.bytes[i] != 0) in.refuse();
    }
  }
  const std::uint16_t port = in.u16();  // 0: none given
  if (port != 0) pinned.port = port;
  return pinned;
}

policy::UpstreamHost get_host(Reader& in) {
  policy::UpstreamHost host;
  host.kind = in.enumerator(policy::HostKind::Bitbucket);
  if (in.flag()) host.address = get_address(in);
  host.allow_private = in.flag();
  host.ca_pem = in.string(kMaxGrantBytes);
  return host;
}

void put(Writer& out, const policy::Timeouts& timeouts) {
  for (const auto timeout :
       {timeouts.connect, timeouts.tls, timeouts.request_head, timeouts.first_byte, timeouts.idle}) {
    out.u32(static_cast<std::uint32_t>(timeout.count()));
  }
}

policy::Timeouts get_timeouts(Reader& in) {
  policy::Timeouts timeouts;
  for (auto* timeout :
       {&timeouts.connect, &timeouts.tls, &timeouts.request_head, &timeouts.first_byte, &timeouts.idle}) {
    *timeout = std::chrono::milliseconds(in.u32());
    if (*timeout < policy::kMinTimeout || *timeout > policy::kMaxTimeout) in.refuse();
  }
  return timeouts;
}

void put(Writer& out, const std::optional<Rate>& rate) {
  out.u8(rate ? 1 : 0);
  if (!rate) return;
  out.u64(rate->amount);
  out.u32(static_cast<std::uint32_t>(rate->per.count()));
  out.u64(rate->burst);
}

std::optional<Rate> get_rate(Reader& in) {
  if (!in.flag()) return std::nullopt;
  Rate rate;
  rate.amount = in.u64();
  rate.per = std::chrono::seconds(in.u32());
  rate.burst = in.u64();
  const auto is_amount = [](std::uint64_t number) { return number > 0 && number <= policy::kMaxRateAmount; };
  if (!is_amount(rate.amount) || !is_amount(rate.burst) || rate.per.count() == 0 ||
      rate.per > policy::kMaxRatePeriod) {
    in.refuse();
  }
  return rate;
}

void put(Writer& out, const policy::Limits& limits) {
  for (const std::uint32_t number :
       {limits.connections, limits.requests_per_host, limits.tunnels_per_host, limits.pending_connects}) {
    out.u32(number);
  }
  for (const auto& rate :
       {limits.new_connections, limits.requests, limits.dns, limits.upload, limits.download}) {
    put(out, rate);
  }
  for (const auto time : {limits.tunnel_idle, limits.tunnel_life}) {
    out.u32(static_cast<std::uint32_t>(time.count()));
  }
  out.u64(limits.tunnel_upload);
  out.u64(limits.tunnel_download);
}

policy::Limits get_limits(Reader& in) {
  policy::Limits limits;
  for (auto* number :
       {&limits.connections, &limits.requests_per_host, &limits.tunnels_per_host, &limits.pending_connects}) {
    *number = in.u32();
    if (*number == 0 || *number > policy::kMaxAtOnce) in.refuse();
  }
  for (auto* rate :
       {&limits.new_connections, &limits.requests, &limits.dns, &limits.upload, &limits.download}) {
    *rate = get_rate(in);
  }
  for (const auto& [time, max] : {std::pair{&limits.tunnel_idle, policy::kMaxTunnelIdle},
                                  std::pair{&limits.tunnel_life, policy::kMaxTunnelLife}}) {
    *time = std::chrono::milliseconds(in.u32());
    if (*time < policy::kMinTimeout || *time > max) in.refuse();
  }
  limits.tunnel_upload = in.u64();
  limits.tunnel_download = in.u64();
  return limits;
}

void put(Writer& out, const policy::RuleSource& source) {
  out.string(source.file);
  out.u32(static_cast<std::uint32_t>(source.line));
}

policy::RuleSource get_source(Reader& in) {
  std::string file = in.string(kMaxSourceFileBytes);
  const std::uint32_t line = in.u32();
  if (line > kMaxSourceLine) in.refuse();
  return {std::move(file), static_cast<int>(line)};
}

void put(Writer& out, const policy::GitRule& rule) {
  out.string(rule.repo.str());
  out.enumerator(rule.access);
  out.string(rule.credential);
  put(out, rule.source);
}

// What [[allow]] and [[deny]] have in common.
template <typename Rule>
void put_scope(Writer& out, const Rule& rule) {
  out.u32(static_cast<std::uint32_t>(rule.hosts.size()));
  for (const policy::HostPattern& host : rule.hosts) out.string(host.str());
  out.u32(static_cast<std::uint32_t>(rule.ports.size()));
  for (const std::uint16_t port : rule.ports) out.u16(port);
  out.u8(rule.methods.bits());
  out.u32(static_cast<std::uint32_t>(rule.paths.size()));
  for (const policy::PathPattern& path : rule.paths) out.string(path.str());
  put(out, rule.source);
}

void put(Writer& out, const policy::AllowRule& rule) {
  put_scope(out, rule);
  out.u8(rule.scheme ? 1 : 0);
  out.enumerator(rule.scheme.value_or(policy::Scheme::Https));
  out.u64(rule.max_body);
  out.enumerator(rule.tls);
  out.u8(rule.websocket ? 1 : 0);
  out.u8(rule.encoded_slash ? 1 : 0);
}

void put(Writer& out, const policy::DenyRule& rule) {
  put_scope(out, rule);
}

void put(Writer& out, const policy::TcpRule& rule) {
  out.string(rule.host.str());
  out.u16(rule.port);
  put(out, rule.source);
}

// A text that must be what its own parser would write again.
template <typename Parsed>
Status get_exactly(Reader& in, std::size_t max_bytes, std::vector<Parsed>& into) {
  const std::string text = in.string(max_bytes);
  auto parsed = Parsed::parse(text);
  if (!parsed || parsed->str() != text) return fail(Reason::Internal, "grant: a rule has no pattern");
  into.push_back(*std::move(parsed));
  return {};
}

template <typename Rule>
Status get_scope(Reader& in, Rule& rule) {
  for (std::uint32_t left = in.count(policy::kMaxRuleHosts); left > 0; --left) {
    if (auto got = get_exactly(in, kMaxHostPatternBytes, rule.hosts); !got) return got;
  }
  rule.ports.clear();
  for (std::uint32_t left = in.count(policy::kMaxRulePorts); left > 0; --left) rule.ports.push_back(in.u16());
  const std::uint8_t methods = in.u8();
  rule.methods = policy::Methods::from_bits(methods);
  if (rule.methods.bits() != methods || rule.methods.empty() || rule.hosts.empty()) in.refuse();
  for (std::uint32_t left = in.count(policy::kMaxRulePaths); left > 0; --left) {
    if (auto got = get_exactly(in, policy::PathPattern::kMaxBytes, rule.paths); !got) return got;
  }
  rule.source = get_source(in);
  return {};
}

Result<policy::AllowRule> get_allow(Reader& in) {
  policy::AllowRule rule;
  if (auto got = get_scope(in, rule); !got) return fail(std::move(got));
  const bool has_scheme = in.flag();
  const auto scheme = in.enumerator(policy::Scheme::Http);
  if (has_scheme) rule.scheme = scheme;
  if (!has_scheme && scheme != policy::Scheme::Https) in.refuse();
  rule.max_body = in.u64();
  rule.tls = in.enumerator(policy::TlsMode::Splice);
  rule.websocket = in.flag();
  rule.encoded_slash = in.flag();
  return rule;
}

Result<policy::DenyRule> get_deny(Reader& in) {
  policy::DenyRule rule;
  if (auto got = get_scope(in, rule); !got) return fail(std::move(got));
  return rule;
}

Result<policy::TcpRule> get_tcp(Reader& in) {
  const std::string text = in.string(policy::HostName::kMaxBytes);
  auto host = policy::HostName::parse(text);
  if (!host || host->str() != text) return fail(Reason::Internal, "grant: a rule names no host");
  const std::uint16_t port = in.u16();
  if (port == 0) in.refuse();
  return policy::TcpRule{*std::move(host), port, get_source(in)};
}

template <typename Rule, typename Get>
Status get_list(Reader& in, policy::RuleList<Rule>& into, Get get, std::size_t max = kMaxGrantRules) {
  for (std::uint32_t left = in.count(static_cast<std::uint32_t>(max)); left > 0; --left) {
    auto rule = get(in);
    if (!rule) return fail(std::move(rule));
    if (!in.ok()) return fail(Reason::Internal, "grant: cut or malformed rule");
    into.push_back(*std::move(rule));
  }
  return {};
}

template <typename Rule>
void put_list(Writer& out, const policy::RuleList<Rule>& rules) {
  out.u32(static_cast<std::uint32_t>(rules.size()));
  for (const Rule& rule : rules) put(out, rule);
}

using Hosts = std::map<policy::HostName, policy::UpstreamHost>;

void put_hosts(Writer& out, const Hosts& hosts) {
  out.u32(static_cast<std::uint32_t>(hosts.size()));
  for (const auto& [name, host] : hosts) {
    out.string(name.str());
    put(out, host);
  }
}

Status get_hosts(Reader& in, Hosts& hosts) {
  const std::uint32_t count = in.count(kMaxGrantHosts);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::string text = in.string(policy::HostName::kMaxBytes);
    auto name = policy::HostName::parse(text);
    if (!name) return fail(Reason::Internal, "grant: host " + std::to_string(i) + " is no name");
    const bool in_order = hosts.empty() || hosts.rbegin()->first < *name;
    if (name->str() != text || !in_order) return fail(Reason::Internal, "grant: hosts out of order");
    hosts.emplace(std::move(*name), get_host(in));
  }
  return {};
}

Result<policy::GitRule> get_rule(Reader& in, const policy::Grant& grant) {
  const std::string text = in.string(kMaxPatternBytes);
  const auto access = in.enumerator(policy::Access::Push);
  std::string credential = in.string(kMaxCredentialBytes);
  policy::RuleSource source = get_source(in);
  if (!in.ok()) return fail(Reason::Internal, "grant: cut or malformed rule");

  const auto host = policy::host_of_repo(text);
  if (!host) return fail(Reason::Internal, "grant: a rule names no host");
  const policy::UpstreamHost* entry = grant.find_host(*host);
  if (entry == nullptr) return fail(Reason::Internal, "grant: a rule's host has no entry");
  auto pattern = policy::RepoPattern::parse(text, entry->kind);
  if (!pattern || pattern->str() != text) return fail(Reason::Internal, "grant: a rule is no pattern");
  return policy::GitRule{std::move(*pattern), access, std::move(credential), std::move(source)};
}

}  // namespace

std::string encode_grant(const policy::Grant& grant) {
  Writer out;
  out.u8(kGrantVersion);
  // Hosts first: reading a rule needs its host's kind.
  put_hosts(out, grant.hosts);
  put_list(out, grant.git);
  put_list(out, grant.allow);
  put_list(out, grant.deny);
  put_list(out, grant.tcp);
  put_hosts(out, grant.hosts_below);
  put(out, grant.timeouts);
  put(out, grant.limits);
  out.u32(static_cast<std::uint32_t>(grant.resolvers.size()));
  for (const policy::PinnedAddress& resolver : grant.resolvers) put(out, resolver);
  return out.take();
}

Result<policy::Grant> decode_grant(std::string_view bytes) {
  if (bytes.size() > kMaxGrantBytes) return fail(Reason::Internal, "grant: too large");
  Reader in(bytes);
  if (in.u8() != kGrantVersion) return fail(Reason::Internal, "grant: unknown version");
  policy::Grant grant;
  if (auto hosts = get_hosts(in, grant.hosts); !hosts) return fail(std::move(hosts));
  const auto get_git = [&grant](Reader& reader) { return get_rule(reader, grant); };
  if (auto got = get_list(in, grant.git, get_git); !got) return fail(std::move(got));
  if (auto got = get_list(in, grant.allow, get_allow); !got) return fail(std::move(got));
  if (auto got = get_list(in, grant.deny, get_deny); !got) return fail(std::move(got));
  if (auto got = get_list(in, grant.tcp, get_tcp, policy::kMaxRuleHosts); !got) return fail(std::move(got));
  if (auto hosts = get_hosts(in, grant.hosts_below); !hosts) return fail(std::move(hosts));
  grant.timeouts = get_timeouts(in);
  grant.limits = get_limits(in);
  for (std::uint32_t left = in.count(policy::kMaxResolvers); left > 0; --left) {
    grant.resolvers.push_back(get_address(in));
  }
  if (!in.finished()) return fail(Reason::Internal, "grant: cut or malformed");
  return grant;
}

Result<policy::Grant> read_grant(const Fd& file) {
  auto bytes = read_memfd(file, kMaxGrantBytes);
  if (!bytes) return fail(std::move(bytes));
  return decode_grant(*bytes);
}

}  // namespace sallyport::wire
