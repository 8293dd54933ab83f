// What happened, before it becomes a line of JSON. docs/audit.md is the schema; json.h writes it.
// Most texts were chosen by a sandbox or an upstream: any bytes, any length, until sanitize().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/reason.h"

namespace sallyport::audit {

enum class Kind : std::uint8_t {
  SessionStart,
  SessionEnd,
  Begin,       // an allowed request, accepted by the writer before anything is dialled
  End,         // the same request's outcome
  Refused,     // a request that was not allowed: one line
  Refs,        // more refs of a push whose Begin could not hold them all
  Credential,  // the vault used a credential
  Alarm,       // something that should not happen: an interface appeared, a process of ours died
  Reload,      // another policy took force: all lines that follow were judged by it. By the warden alone too
  Coalesced,   // so many more of another kind, which got no line each: by the warden alone, never on the wire
};

// By which way it came in.
enum class Entry : std::uint8_t { None, Tls, Http, Tcp, Dns, Udp, Icmp, Proxy };

struct RefChange {
  std::string ref;  // bytes as git sent them
  std::string old_id;
  std::string new_id;
};

struct Event {
  // Limits of one event, so that one line and one packet stay small.
  static constexpr std::size_t kMaxText = 4096;  // path, detail, rule, a ref's name
  static constexpr std::size_t kMaxName = 512;   // every other text
  static constexpr std::size_t kMaxRefs = 64;    // and not more than kMaxRefsBytes of them
  static constexpr std::size_t kMaxRefsBytes = 32 * 1024;

  Kind kind = Kind::Refused;
  std::string request;  // id, "" for session events
  Entry entry = Entry::None;
  std::string destination;  // the address and port that the client addressed
  std::string scheme;       // "https", "http", "dns", ...
  std::string host;
  std::uint16_t port = 0;
  std::string method;
  std::string path;  // the canonical target; for DNS the record type
  Reason reason = Reason::None;
  std::string detail;      // particulars for the operator
  std::string rule;        // "sallyport.toml:3"
  std::string credential;  // its name
  std::vector<RefChange> refs;
  std::uint32_t refs_total = 0;

  // Coalesced only.
  Kind of = Kind::Refused;
  std::uint64_t count = 0;

  // End only.
  int status = 0;               // upstream's HTTP status
  std::uint64_t bytes_in = 0;   // body bytes from the sandbox
  std::uint64_t bytes_out = 0;  // body bytes to the sandbox
  std::chrono::microseconds duration{0};
};

// A request's id, the same on all its lines and in what its client is told. Not secret: it names, and opens
// nothing.
std::string new_request_id();

// Makes an event fit for a packet and a line: token shapes masked (mask.h), texts cut to their limits with
// "..." at the end, refs that do not fit left out (refs_total still counts them). Doing it twice changes
// nothing.
void sanitize(Event& event);

// How many of the first `refs` one event holds: a push of more goes on in Refs events.
std::size_t refs_that_fit(std::span<const RefChange> refs);

}  // namespace sallyport::audit
