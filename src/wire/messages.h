// What the warden, the gate and the vault say to each other on their control sockets (SOCK_SEQPACKET, one
// message a packet, descriptors beside it). Which process may send what stands in the variant types below:
// anything else is refused, and so is a packet with another number of descriptors than its message has.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "audit/event.h"
#include "base/result.h"
#include "os/netns.h"
#include "os/unix_socket.h"
#include "policy/decide.h"
#include "policy/host.h"

namespace sallyport::wire {

inline constexpr std::uint8_t kVersion = 1;
// One packet brings them all to the gate, beside one other descriptor.
inline constexpr std::size_t kMaxHostDoors = 15;
static_assert(kMaxHostDoors < os::kMaxPacketFds);
// A gate or a vault waits so long for its start: a warden that started it and then says nothing is about to
// die.
inline constexpr std::chrono::seconds kStartLimit{10};

// ---- warden -> a process of either kind, on the socket that it is started with ----

// First, once, before its confinement.
struct ServiceStart {
  bool system_roots;  // some session may need the authorities that the system trusts
};
// Another session. One descriptor: the packet socket for everything that is about it, which ends with it.
struct OpenSession {};

// ---- warden -> gate, for one session ----

// First message, once. The PEM texts are the session's own CA; the key is born in the warden so that a
// restarted gate can go on under the CA that the sandbox already trusts.
// One descriptor: the grant, encode_grant() in a sealed memfd.
struct GateStart {
  std::string session;
  std::string ca_certificate_pem;
  std::string ca_key_pem;
};
using DoorMode = os::DoorMode;
using DoorKind = os::ListenerKind;
struct DoorInfo {
  DoorKind kind;
  std::uint16_t port;  // Direct: the port that clients address; Redirect: the door's own
};
// One descriptor a door, in order.
struct GateDoors {
  DoorMode mode;
  std::vector<DoorInfo> doors;
};
// How a connection to a door of the host says where it wants to go.
enum class HostDoorUse : std::uint8_t {
  Proxy,  // by its requests, as to an explicit proxy
  Tls,    // by its SNI; port 443
  Http,   // by its Host; port 80
  Dns,
  Fixed,  // not at all: it goes to `target`
};
struct FixedTarget {
  policy::Scheme scheme;
  policy::Authority authority;
};
struct HostDoor {
  DoorKind kind;
  HostDoorUse use;
  std::optional<FixedTarget> target;  // of Fixed
};
// Another grant in the place of the one before, from now on. It may differ in rules, hosts and name servers
// alone: whatever else a gate has of a grant it takes once. One descriptor: as GateStart's.
struct GateGrant {};
// Doors on the host's own addresses, where there is no sandbox. Descriptors: os::open_socket_diagnosis()'s,
// by which the gate asks whose a connection is, then one a door, in order.
struct GateHostDoors {
  std::uint32_t owner;  // the uid whose connections are served
  std::vector<HostDoor> doors;
};
// One descriptor: the socket on which the kernel reports refused packets. After the pre-flight, whose own
// packets are nobody's to read about.
struct GatePacketLog {};
// One descriptor: the packet socket on which the gate hands lanes to the (new) vault.
struct GateVault {};
// Pre-flight is answered while armed: a connection that opens with probe_line is answered with door_line.
struct GateProbe {
  bool armed;
  std::string probe_line;
  std::string door_line;
};
// The fate of the event with that number: written, or not (then the request is refused).
struct AuditWritten {
  std::uint64_t number;
  bool written;
};

// ---- gate -> warden, for one session ----

struct Ready {};  // also vault -> warden
inline constexpr std::uint64_t kNobodyWaits = 0;
struct AuditAppend {
  std::uint64_t number;  // counts up, and is answered by AuditWritten; or kNobodyWaits
  audit::Event event;
};

// The last GateGrant is in force: what is sent from now on was judged by it.
struct GrantTaken {};

// ---- warden -> vault, for one session ----

// First message, once. One descriptor: the grant, as for the gate.
struct VaultStart {
  std::string session;
  std::uint64_t uses_left = UINT64_MAX;  // of credentials, by requests: no more
};
// One descriptor: the packet socket from which lanes come.
struct VaultGate {};
// One descriptor: the open credential file. Sent again when the file was replaced; `problem` instead of a
// descriptor when it cannot be opened any more (the old value is dropped).
struct VaultCredential {
  std::string name;
  std::string problem;
};

// ---- vault -> warden, for one session ----

struct VaultEvent {
  audit::Event event;
};
// The vault has read the credential (or says why it could not).
struct CredentialLoaded {
  std::string name;
  std::string problem;
};

using ToService = std::variant<ServiceStart, OpenSession>;
using ToGate = std::variant<GateStart, GateGrant, GateDoors, GateHostDoors, GatePacketLog, GateVault,
                            GateProbe, AuditWritten>;
using FromGate = std::variant<Ready, AuditAppend, GrantTaken>;
using ToVault = std::variant<VaultStart, VaultGate, VaultCredential>;
using FromVault = std::variant<Ready, VaultEvent, CredentialLoaded>;

// How many descriptors travel beside the message.
std::size_t descriptor_count(const ToService& message);
std::size_t descriptor_count(const ToGate& message);
std::size_t descriptor_count(const FromGate& message);
std::size_t descriptor_count(const ToVault& message);
std::size_t descriptor_count(const FromVault& message);

// The texts in a message must be within the limits of messages.cc, which all fit one packet; only an event's
// are cut to them.
std::string encode(const ToService& message);
std::string encode(const ToGate& message);
std::string encode(const FromGate& message);
std::string encode(const ToVault& message);
std::string encode(const FromVault& message);
Result<ToService> decode_to_service(std::string_view bytes);
Result<ToGate> decode_to_gate(std::string_view bytes);
Result<FromGate> decode_from_gate(std::string_view bytes);
Result<ToVault> decode_to_vault(std::string_view bytes);
Result<FromVault> decode_from_vault(std::string_view bytes);

}  // namespace sallyport::wire
