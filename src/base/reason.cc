#include "base/reason.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sallyport {
namespace {

using enum Reason;
using enum Origin;

struct Row {
  Reason reason;
  ReasonInfo info;
};

constexpr std::string_view kLookOutside =
    "If it stays so: outside, run it again with `sallyport run -v`, which names the audit log; the lines of "
    "this "
    "request there say more.";

// In the order of the enum (checked by a test), so that a reason is its row's index.
constexpr std::array kTable{
    Row{None, {"none", Gateway, 200, ""}},

    Row{BadRequest, {"bad_request", Client, 400, "The request cannot be read in exactly one way."}},
    Row{ProxyForm,
        {"proxy_form", Client, 400,
         "A proxy is asked with CONNECT host:port, or with http://host/path in the clear."}},
    Row{HeadTooLarge, {"head_too_large", Client, 431, "The request's head is too large."}},
    Row{TargetTooLong, {"target_too_long", Client, 414, "The request's target is too long."}},
    Row{ExpectationFailed, {"expectation_failed", Client, 417, "Only Expect: 100-continue is understood."}},
    Row{BadPush, {"bad_push", Client, 400, "The list of pushed refs cannot be read as git's protocol says."}},
    Row{BadDnsQuery, {"bad_dns_query", Client, 400, "The DNS query is malformed."}},
    Row{NotTls, {"not_tls", Client, 400, "This port speaks TLS only."}},
    Row{TlsPinned,
        {"tls_pinned", Client, 400, "The client does not accept the gateway's certificate for this host.",
         "Give the client the session's CA, or write tls = \"splice\" into the host's rule if it insists on "
         "another certificate: then nobody looks inside."}},
    Row{NoSni, {"no_sni", Client, 400, "The TLS connection names no host."}},
    Row{SniMismatch, {"sni_mismatch", Client, 421, "The TLS host name is not the one that was looked up."}},
    Row{HostMismatch, {"host_mismatch", Client, 421, "The request's Host is not the connection's host."}},
    Row{ClientTimeout, {"client_timeout", Client, 408, "The client took too long to send its request."}},
    Row{ClientClosed, {"client_closed", Client, 499, "The client went away."}},

    Row{PolicyEmpty, {"policy_empty", Client, 403, "The policy allows nothing."}},
    Row{HostNotAllowed, {"host_not_allowed", Client, 403, "The policy does not allow this host."}},
    Row{IpLiteral,
        {"ip_literal", Client, 403, "Addresses are not allowed, only names that the policy lists."}},
    Row{DeniedByRule, {"denied_by_rule", Client, 403, "A deny rule of the policy forbids this."}},
    Row{PortNotAllowed, {"port_not_allowed", Client, 403, "The policy does not allow this port."}},
    Row{PlainHttp, {"plain_http", Client, 403, "This host is reached over https:// only."}},
    Row{PathNotAllowed, {"path_not_allowed", Client, 403, "The policy does not allow this path."}},
    Row{MethodNotGranted,
        {"method_not_granted", Client, 403, "The policy does not allow this method for this path."}},
    Row{DohRefused,
        {"doh", Client, 403,
         "DNS over HTTPS is not allowed; names are resolved by the sandbox's own name server."}},
    Row{EchRefused, {"ech", Client, 403, "The host's name is encrypted (ECH), so it cannot be judged."}},
    Row{NotGit, {"not_git", Client, 403, "Only git is allowed at this host."}},
    Row{MethodNotAllowed, {"method_not_allowed", Client, 405, "The method does not fit this path."}},
    Row{BadContentType, {"bad_content_type", Client, 415, "The content type is not git's for this path."}},
    Row{BadContentEncoding,
        {"bad_content_encoding", Client, 415, "The content encoding is not allowed here."}},
    Row{DumbHttp, {"dumb_http", Client, 403, "Git's dumb HTTP protocol is not allowed."}},
    Row{LfsNotGranted, {"lfs_not_granted", Client, 501, "Git LFS is not available for this repository."}},
    Row{RepoNotGranted, {"repo_not_granted", Client, 403, "The policy does not grant this repository."}},
    Row{PushNotGranted,
        {"push_not_granted", Client, 403, "The policy grants fetching from this repository, not pushing."}},
    Row{PushCertificate,
        {"push_certificate", Client, 403, "Signed pushes (git push --signed) are not passed on.",
         "Push without --signed."}},
    Row{PushOptions,
        {"push_options", Client, 403, "Push options (git push -o) are not passed on.",
         "Push without -o, and without push.pushOption in the configuration."}},
    Row{UdpRefused, {"udp_refused", Client, 403, "UDP leaves the sandbox for no address."}},
    Row{IcmpRefused,
        {"icmp_refused", Client, 403, "ICMP and other protocols leave the sandbox for no address."}},
    Row{DoorAddressed, {"door_addressed", Client, 403, "The gateway's own door was addressed."}},
    Row{OtherUser, {"other_user", Client, 403, "Only the user who started this is served."}},
    Row{TooMany, {"too_many", Client, 429, "Too many requests or connections at once."}},
    Row{TooLarge, {"too_large", Client, 413, "The request's body is too large."}},
    Row{Revoked, {"revoked", Client, 403, "The policy was changed, and allows this no longer."}},
    Row{UsesSpent,
        {"uses_spent", Client, 403, "The session has used its credentials as often as it may.",
         "Outside, `sallyport stop` and `sallyport start` it: then it may as often again."}},

    Row{UpstreamUnresolved,
        {"upstream_unresolved", Upstream, 502, "The upstream's name cannot be resolved."}},
    Row{AddressDenied,
        {"addr_denied", Upstream, 502,
         "The upstream's address is private or special; the operator can allow it."}},
    Row{UpstreamUnreachable, {"upstream_unreachable", Upstream, 502, "The upstream cannot be reached."}},
    Row{UpstreamTls,
        {"upstream_tls", Upstream, 502, "The upstream's TLS certificate or handshake is not acceptable."}},
    Row{UpstreamTimeout, {"upstream_timeout", Upstream, 504, "The upstream took too long to answer."}},
    Row{UpstreamMalformed, {"upstream_malformed", Upstream, 502, "The upstream's answer is malformed."}},
    Row{UpstreamTruncated, {"upstream_truncated", Upstream, 502, "The upstream's answer ended too early."}},
    Row{UpstreamClosed, {"upstream_closed", Upstream, 502, "The upstream closed the connection."}},
    Row{UpstreamRefusedCredential,
        {"upstream_refused_credential", Upstream, 502,
         "The upstream refused the gateway's credential, or wants one that the policy does not name."}},
    Row{UpstreamNotFound,
        {"upstream_not_found", Upstream, 404,
         "The upstream knows no such repository, or its credential may not see it."}},
    Row{UpstreamRedirect,
        {"upstream_redirect", Upstream, 502,
         "The upstream redirects elsewhere; redirects are not followed."}},
    Row{UpstreamError, {"upstream_error", Upstream, 502, "The upstream answered with an error."}},

    Row{VaultUnavailable,
        {"vault_unavailable", Gateway, 503, "The process that holds the credentials is not there; try again.",
         kLookOutside}},
    Row{VaultRefused,
        {"vault_refused", Gateway, 502, "The process that holds the credentials refused the request.",
         kLookOutside}},
    Row{CredentialUnavailable,
        {"credential_unavailable", Gateway, 502, "The credential that the policy names cannot be read.",
         "Outside, look with `ls -l` at the file that the operator's file names for it: its owner, and mode "
         "0600 or 0400; "
         "then try again: it is read anew."}},
    Row{AuditUnavailable,
        {"audit_unavailable", Gateway, 503, "The audit log cannot be written, so nothing is let through.",
         "Outside, `sallyport run -v` says where the audit log is: make it writable, or make room with "
         "`df`'s help; "
         "then try again."}},
    Row{PolicyUnreadable,
        {"policy_unreadable", Gateway, 503,
         "The changed policy cannot be used; the one before stays in force.",
         "Outside, `sallyport policy check` says what is wrong with it."}},
    Row{SessionEnded,
        {"session_ended", Gateway, 503, "The session has ended.",
         "Outside, start another with `sallyport run`."}},
    Row{ProcessDied,
        {"process_died", Gateway, 503, "A process of the gateway died; try again.", kLookOutside}},
    Row{Interrupted,
        {"interrupted", Gateway, 503, "The gateway ended before the request did.",
         "Outside, start another with `sallyport run`."}},
    Row{WorkspaceTampered,
        {"workspace_tampered", Gateway, 503, "A guarded place of the workspace was changed.",
         "Outside, look at the place that the audit log names, and start another with `sallyport run`."}},
    Row{EngineUnavailable,
        {"engine_unavailable", Gateway, 503, "The container engine does not answer.",
         "Outside, `docker version` (or `podman version`) tells whether it runs."}},
    Row{EngineRefused,
        {"engine_refused", Gateway, 502, "The container engine refused, or answered what makes no sense.",
         "Outside, look into the engine's own log: `journalctl -u docker` (or `-u podman`)."}},
    Row{EngineNotFound,
        {"engine_not_found", Gateway, 404, "The container engine knows no such thing.",
         "Outside, `docker ps -a` and `docker images` (or those of `podman`) list what there is."}},
    Row{Overloaded,
        {"overloaded", Gateway, 503, "The gateway is at one of its limits; try again.",
         "Outside, `grep '\"overloaded\"'` in the audit log, which `sallyport run -v` names, tells which "
         "limit it was."}},
    Row{Internal, {"internal", Gateway, 500, "The gateway made a mistake.", kLookOutside}},
};

static_assert([] {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (std::to_underlying(kTable[i].reason) != i) return false;
  }
  return kTable.size() == std::to_underlying(Reason::Internal) + 1U;
}());

}  // namespace

const ReasonInfo& info(Reason reason) {
  return kTable.at(std::to_underlying(reason)).info;
}

std::optional<Reason> reason_from_code(std::string_view code) {
  const auto* row = std::ranges::find(kTable, code, [](const Row& r) { return r.info.code; });
  if (row == kTable.end()) return std::nullopt;
  return row->reason;
}

std::optional<Reason> reason_from_number(std::uint8_t number) {
  if (number >= kTable.size()) return std::nullopt;
  return kTable[number].reason;
}

}  // namespace sallyport
