#include "wire/grant_codec.h"

#include <chrono>
#include <utility>

#include "wire/codec.h"
#include "wire/sealed.h"

namespace sallyport::wire {
namespace {

constexpr std::uint8_t kGrantVersion = 1;
constexpr std::size_t kMaxPatternBytes = 8192;       // a host and 20 segments of 255 bytes
constexpr std::size_t kMaxCredentialBytes = 256;     // a name in the operator's file
constexpr std::size_t kMaxSourceFileBytes = 4096;    // PATH_MAX
constexpr std::uint32_t kMaxSourceLine = 1U << 30U;  // fits an int; a file has at most a million bytes anyway

void put(Writer& out, const policy::UpstreamHost& host) {
  out.enumerator(host.kind);
  out.u8(host.address ? 1 : 0);
  if (host.address) {
    out.enumerator(host.address->address.family);
    for (const std::uint8_t byte : host.address->address.bytes) out.u8(byte);
    out.u16(host.address->port.value_or(0));
  }
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

void put(Writer& out, const policy::GitRule& rule) {
  out.string(rule.repo.str());
  out.enumerator(rule.access);
  out.string(rule.credential);
  out.string(rule.source.file);
  out.u32(static_cast<std::uint32_t>(rule.source.line));
}

Status get_hosts(Reader& in, policy::Grant& grant) {
  const std::uint32_t count = in.count(kMaxGrantHosts);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::string text = in.string(policy::HostName::kMaxBytes);
    auto name = policy::HostName::parse(text);
    if (!name) return fail(Reason::Internal, "grant: host " + std::to_string(i) + " is no name");
    const bool in_order = grant.hosts.empty() || grant.hosts.rbegin()->first < *name;
    if (name->str() != text || !in_order) return fail(Reason::Internal, "grant: hosts out of order");
    grant.hosts.emplace(std::move(*name), get_host(in));
  }
  return {};
}

Result<policy::GitRule> get_rule(Reader& in, const policy::Grant& grant) {
  const std::string text = in.string(kMaxPatternBytes);
  const auto access = in.enumerator(policy::Access::Push);
  std::string credential = in.string(kMaxCredentialBytes);
  std::string file = in.string(kMaxSourceFileBytes);
  const std::uint32_t line = in.u32();
  if (line > kMaxSourceLine) in.refuse();
  if (!in.ok()) return fail(Reason::Internal, "grant: cut or malformed rule");

  const auto host = policy::host_of_repo(text);
  if (!host) return fail(Reason::Internal, "grant: a rule names no host");
  const policy::UpstreamHost* entry = grant.find_host(*host);
  if (entry == nullptr) return fail(Reason::Internal, "grant: a rule's host has no entry");
  auto pattern = policy::RepoPattern::parse(text, entry->kind);
  if (!pattern || pattern->str() != text) return fail(Reason::Internal, "grant: a rule is no pattern");
  return policy::GitRule{
      std::move(*pattern), access, std::move(credential), {std::move(file), static_cast<int>(line)}};
}

}  // namespace

std::string encode_grant(const policy::Grant& grant) {
  Writer out;
  out.u8(kGrantVersion);
  // Hosts first: reading a rule needs its host's kind.
  out.u32(static_cast<std::uint32_t>(grant.hosts.size()));
  for (const auto& [name, host] : grant.hosts) {
    out.string(name.str());
    put(out, host);
  }
  out.u32(static_cast<std::uint32_t>(grant.git.size()));
  for (const policy::GitRule& rule : grant.git) put(out, rule);
  put(out, grant.timeouts);
  return out.take();
}

Result<policy::Grant> decode_grant(std::string_view bytes) {
  if (bytes.size() > kMaxGrantBytes) return fail(Reason::Internal, "grant: too large");
  Reader in(bytes);
  if (in.u8() != kGrantVersion) return fail(Reason::Internal, "grant: unknown version");
  policy::Grant grant;
  if (auto hosts = get_hosts(in, grant); !hosts) return fail(std::move(hosts));
  const std::uint32_t count = in.count(kMaxGrantRules);
  for (std::uint32_t i = 0; i < count; ++i) {
    auto rule = get_rule(in, grant);
    if (!rule) return fail(std::move(rule));
    grant.git.push_back(std::move(*rule));
  }
  grant.timeouts = get_timeouts(in);
  if (!in.finished()) return fail(Reason::Internal, "grant: cut or malformed");
  return grant;
}

Result<policy::Grant> read_grant(const Fd& file) {
  auto bytes = read_memfd(file, kMaxGrantBytes);
  if (!bytes) return fail(std::move(bytes));
  return decode_grant(*bytes);
}

}  // namespace sallyport::wire
