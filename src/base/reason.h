// The one table of reasons: why something was refused or failed. A code for machines (audit, metrics, JSON),
// the side that is at fault, the HTTP status where there is one, and a sentence for people; docs/errors.md
// shows it. The sentence never names anything that the sandbox did not already know; particulars go to the
// audit log as Error::detail or Decision::detail.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sallyport {

// Who is at fault. Chooses the metric, and what "try again" would mean.
enum class Origin : std::uint8_t { Client, Upstream, Gateway };

enum class Reason : std::uint8_t {
  None,  // allowed, or not decided

  // The request cannot be read in exactly one way.
  BadRequest,
  ProxyForm,
  HeadTooLarge,
  TargetTooLong,
  ExpectationFailed,
  BadPush,
  BadDnsQuery,
  NotTls,
  TlsPinned,
  NoSni,
  SniMismatch,
  HostMismatch,
  ClientTimeout,
  ClientClosed,

  // The request is clear, and policy says no.
  PolicyEmpty,
  HostNotAllowed,
  IpLiteral,
  DeniedByRule,
  PortNotAllowed,
  PlainHttp,
  PathNotAllowed,
  MethodNotGranted,
  DohRefused,
  EchRefused,
  NotGit,
  MethodNotAllowed,
  BadContentType,
  BadContentEncoding,
  DumbHttp,
  LfsNotGranted,
  RepoNotGranted,
  PushNotGranted,
  PushCertificate,
  PushOptions,
  UdpRefused,
  IcmpRefused,
  DoorAddressed,
  OtherUser,
  TooMany,
  TooLarge,
  Revoked,
  UsesSpent,

  // The upstream did not do its part.
  UpstreamUnresolved,
  AddressDenied,
  UpstreamUnreachable,
  UpstreamTls,
  UpstreamTimeout,
  UpstreamMalformed,
  UpstreamTruncated,
  UpstreamClosed,
  UpstreamRefusedCredential,
  UpstreamNotFound,
  UpstreamRedirect,
  UpstreamError,

  // Sallyport itself.
  VaultUnavailable,
  VaultRefused,
  CredentialUnavailable,
  AuditUnavailable,
  PolicyUnreadable,
  SessionEnded,
  ProcessDied,
  Interrupted,
  WorkspaceTampered,
  EngineUnavailable,
  EngineRefused,
  EngineNotFound,
  Overloaded,
  Internal,
};

struct ReasonInfo {
  std::string_view code;  // stable, snake_case
  Origin origin;
  int status;  // HTTP status of the refusal
  std::string_view sentence;
  // What whoever runs the sandbox can do about it, with the command; "" where the sentence says enough.
  std::string_view advice = "";
};

const ReasonInfo& info(Reason reason);
inline std::string_view code(Reason reason) {
  return info(reason).code;
}

// The request could not be read in exactly one way, or not to its end: where the next one would begin on its
// connection is anybody's guess, so none is served there.
constexpr bool ends_connection(Reason reason) {
  return reason >= Reason::BadRequest && reason <= Reason::ClientClosed;
}

// The reason with that code, for reading audit lines and frames back.
std::optional<Reason> reason_from_code(std::string_view code);
// The reason with that number, as it travels between our processes; nullopt for a number that is none.
std::optional<Reason> reason_from_number(std::uint8_t number);

}  // namespace sallyport
