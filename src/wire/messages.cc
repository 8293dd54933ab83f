#include "wire/messages.h"

#include <utility>

#include "base/visitor.h"
#include "os/unix_socket.h"
#include "wire/codec.h"
#include "wire/event_codec.h"

namespace sallyport::wire {
namespace {

// Two PEM texts of this size and everything else fit one packet.
constexpr std::size_t kMaxPemBytes = 16 * 1024;
constexpr std::size_t kMaxSessionBytes = 64;     // 128 bits in hex, and room for a better idea
constexpr std::size_t kMaxProbeBytes = 256;      // a nonce with a word before it
constexpr std::size_t kMaxCredentialName = 256;  // as in a grant
constexpr std::size_t kMaxProblemBytes = 4096;

// The second byte of a packet. Each message has its own, whoever sends it, so that a packet that reached the
// wrong process is never read as something else.
enum class Type : std::uint8_t {
  GateStart = 1,
  GateDoors = 2,
  GateVault = 3,
  GateProbe = 4,
  AuditWritten = 5,
  GatePacketLog = 6,
  GateHostDoors = 7,
  GateGrant = 8,
  Ready = 16,
  AuditAppend = 17,
  GrantTaken = 18,
  VaultStart = 32,
  VaultGate = 33,
  VaultCredential = 34,
  VaultEvent = 48,
  CredentialLoaded = 49,
  ServiceStart = 64,
  OpenSession = 65,
};

Writer begin(Type type) {
  Writer out;
  out.u8(kVersion).enumerator(type);
  return out;
}

struct Opened {
  Type type;
  Reader body;
};

Result<Opened> open_packet(std::string_view bytes) {
  if (bytes.size() < 2) return fail(Reason::Internal, "control message: too short");
  if (static_cast<std::uint8_t>(bytes[0]) != kVersion) {
    return fail(Reason::Internal, "control message: unknown version");
  }
  return Opened{static_cast<Type>(static_cast<std::uint8_t>(bytes[1])), Reader(bytes.substr(2))};
}

// The message, if its bytes were read to the last one.
template <class Message>
Result<Message> closed(const Reader& in, Message message) {
  if (!in.finished()) return fail(Reason::Internal, "control message: cut or malformed");
  return message;
}

std::unexpected<Error> unexpected_type() {
  return fail(Reason::Internal, "control message: not one that this process may send");
}

GateStart get_gate_start(Reader& in) {
  GateStart start;
  start.session = in.string(kMaxSessionBytes);
  start.ca_certificate_pem = in.string(kMaxPemBytes);
  start.ca_key_pem = in.string(kMaxPemBytes);
  return start;
}

GateDoors get_gate_doors(Reader& in) {
  GateDoors doors{};
  doors.mode = in.enumerator(DoorMode::Direct);
  const std::uint32_t count = in.count(os::kMaxPacketFds);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto kind = in.enumerator(DoorKind::Udp);
    const std::uint16_t port = in.u16();
    doors.doors.push_back({kind, port});
  }
  return doors;
}

std::optional<FixedTarget> get_fixed_target(Reader& in) {
  const auto scheme = in.enumerator(policy::Scheme::Http);
  auto host = policy::HostName::parse(in.string(policy::HostName::kMaxBytes));
  const std::uint16_t port = in.u16();
  if (!host) in.refuse();
  if (!in.ok()) return std::nullopt;
  return FixedTarget{scheme, {std::move(*host), port}};
}

GateHostDoors get_gate_host_doors(Reader& in) {
  GateHostDoors doors{};
  doors.owner = in.u32();
  const std::uint32_t count = in.count(kMaxHostDoors);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    HostDoor door{in.enumerator(DoorKind::Udp), in.enumerator(HostDoorUse::Fixed), std::nullopt};
    if (door.use == HostDoorUse::Fixed) door.target = get_fixed_target(in);
    // Every other use of a door is by connections.
    if (door.kind == DoorKind::Udp && door.use != HostDoorUse::Dns) in.refuse();
    doors.doors.push_back(std::move(door));
  }
  return doors;
}

GateProbe get_gate_probe(Reader& in) {
  GateProbe probe{};
  probe.armed = in.flag();
  probe.probe_line = in.string(kMaxProbeBytes);
  probe.door_line = in.string(kMaxProbeBytes);
  return probe;
}

AuditWritten get_audit_written(Reader& in) {
  AuditWritten written{};
  written.number = in.u64();
  written.written = in.flag();
  return written;
}

AuditAppend get_audit_append(Reader& in) {
  AuditAppend append{};
  append.number = in.u64();
  append.event = get_event(in);
  return append;
}

VaultStart get_vault_start(Reader& in) {
  VaultStart start;
  start.session = in.string(kMaxSessionBytes);
  start.uses_left = in.u64();
  return start;
}

VaultCredential get_vault_credential(Reader& in) {
  VaultCredential credential;
  credential.name = in.string(kMaxCredentialName);
  credential.problem = in.string(kMaxProblemBytes);
  return credential;
}

CredentialLoaded get_credential_loaded(Reader& in) {
  CredentialLoaded loaded;
  loaded.name = in.string(kMaxCredentialName);
  loaded.problem = in.string(kMaxProblemBytes);
  return loaded;
}

std::string encode_doors(const GateDoors& message) {
  Writer out = begin(Type::GateDoors);
  out.enumerator(message.mode).u32(static_cast<std::uint32_t>(message.doors.size()));
  for (const DoorInfo& door : message.doors) out.enumerator(door.kind).u16(door.port);
  return out.take();
}

std::string encode_host_doors(const GateHostDoors& message) {
  Writer out = begin(Type::GateHostDoors);
  out.u32(message.owner).u32(static_cast<std::uint32_t>(message.doors.size()));
  for (const HostDoor& door : message.doors) {
    out.enumerator(door.kind).enumerator(door.use);
    if (!door.target) continue;
    const policy::Authority& authority = door.target->authority;
    out.enumerator(door.target->scheme).string(authority.host.str()).u16(authority.port);
  }
  return out.take();
}

}  // namespace

std::size_t descriptor_count(const ToService& message) {
  return std::holds_alternative<OpenSession>(message) ? 1 : 0;
}

std::size_t descriptor_count(const ToGate& message) {
  return std::visit(Visitor{
                        [](const GateStart&) -> std::size_t { return 1; },
                        [](const GateGrant&) -> std::size_t { return 1; },
                        [](const GateDoors& m) { return m.doors.size(); },
                        [](const GateHostDoors& m) { return m.doors.size() + 1; },
                        [](const GatePacketLog&) -> std::size_t { return 1; },
                        [](const GateVault&) -> std::size_t { return 1; },
                        [](const GateProbe&) -> std::size_t { return 0; },
                        [](const AuditWritten&) -> std::size_t { return 0; },
                    },
                    message);
}

std::size_t descriptor_count(const FromGate& /*message*/) {
  return 0;
}

std::size_t descriptor_count(const ToVault& message) {
  return std::visit(Visitor{
                        [](const VaultStart&) -> std::size_t { return 1; },
                        [](const VaultGate&) -> std::size_t { return 1; },
                        [](const VaultCredential& m) -> std::size_t { return m.problem.empty() ? 1 : 0; },
                    },
                    message);
}

std::size_t descriptor_count(const FromVault& /*message*/) {
  return 0;
}

std::string encode(const ToService& message) {
  return std::visit(
      Visitor{
          [](const ServiceStart& m) { return begin(Type::ServiceStart).u8(m.system_roots ? 1 : 0).take(); },
          [](const OpenSession&) { return begin(Type::OpenSession).take(); },
      },
      message);
}

std::string encode(const ToGate& message) {
  return std::visit(
      Visitor{
          [](const GateStart& m) {
            return begin(Type::GateStart)
                .string(m.session)
                .string(m.ca_certificate_pem)
                .string(m.ca_key_pem)
                .take();
          },
          [](const GateGrant&) { return begin(Type::GateGrant).take(); },
          [](const GateDoors& m) { return encode_doors(m); },
          [](const GateHostDoors& m) { return encode_host_doors(m); },
          [](const GatePacketLog&) { return begin(Type::GatePacketLog).take(); },
          [](const GateVault&) { return begin(Type::GateVault).take(); },
          [](const GateProbe& m) {
            return begin(Type::GateProbe).u8(m.armed ? 1 : 0).string(m.probe_line).string(m.door_line).take();
          },
          [](const AuditWritten& m) {
            return begin(Type::AuditWritten).u64(m.number).u8(m.written ? 1 : 0).take();
          },
      },
      message);
}

std::string encode(const FromGate& message) {
  return std::visit(Visitor{
                        [](const Ready&) { return begin(Type::Ready).take(); },
                        [](const AuditAppend& m) {
                          Writer out = begin(Type::AuditAppend);
                          out.u64(m.number);
                          put_event(out, m.event);
                          return out.take();
                        },
                        [](const GrantTaken&) { return begin(Type::GrantTaken).take(); },
                    },
                    message);
}

std::string encode(const ToVault& message) {
  return std::visit(Visitor{
                        [](const VaultStart& m) {
                          return begin(Type::VaultStart).string(m.session).u64(m.uses_left).take();
                        },
                        [](const VaultGate&) { return begin(Type::VaultGate).take(); },
                        [](const VaultCredential& m) {
                          return begin(Type::VaultCredential).string(m.name).string(m.problem).take();
                        },
                    },
                    message);
}

std::string encode(const FromVault& message) {
  return std::visit(Visitor{
                        [](const Ready&) { return begin(Type::Ready).take(); },
                        [](const VaultEvent& m) {
                          Writer out = begin(Type::VaultEvent);
                          put_event(out, m.event);
                          return out.take();
                        },
                        [](const CredentialLoaded& m) {
                          return begin(Type::CredentialLoaded).string(m.name).string(m.problem).take();
                        },
                    },
                    message);
}

Result<ToService> decode_to_service(std::string_view bytes) {
  auto packet = open_packet(bytes);
  if (!packet) return fail(std::move(packet));
  Reader& in = packet->body;
  if (packet->type == Type::ServiceStart) return closed<ToService>(in, ServiceStart{in.flag()});
  if (packet->type == Type::OpenSession) return closed<ToService>(in, OpenSession{});
  return unexpected_type();
}

Result<ToGate> decode_to_gate(std::string_view bytes) {
  auto packet = open_packet(bytes);
  if (!packet) return fail(std::move(packet));
  Reader& in = packet->body;
  if (packet->type == Type::GateStart) return closed<ToGate>(in, get_gate_start(in));
  if (packet->type == Type::GateGrant) return closed<ToGate>(in, GateGrant{});
  if (packet->type == Type::GateDoors) return closed<ToGate>(in, get_gate_doors(in));
  if (packet->type == Type::GateHostDoors) return closed<ToGate>(in, get_gate_host_doors(in));
  if (packet->type == Type::GatePacketLog) return closed<ToGate>(in, GatePacketLog{});
  if (packet->type == Type::GateVault) return closed<ToGate>(in, GateVault{});
  if (packet->type == Type::GateProbe) return closed<ToGate>(in, get_gate_probe(in));
  if (packet->type == Type::AuditWritten) return closed<ToGate>(in, get_audit_written(in));
  return unexpected_type();
}

Result<FromGate> decode_from_gate(std::string_view bytes) {
  auto packet = open_packet(bytes);
  if (!packet) return fail(std::move(packet));
  Reader& in = packet->body;
  if (packet->type == Type::Ready) return closed<FromGate>(in, Ready{});
  if (packet->type == Type::AuditAppend) return closed<FromGate>(in, get_audit_append(in));
  if (packet->type == Type::GrantTaken) return closed<FromGate>(in, GrantTaken{});
  return unexpected_type();
}

Result<ToVault> decode_to_vault(std::string_view bytes) {
  auto packet = open_packet(bytes);
  if (!packet) return fail(std::move(packet));
  Reader& in = packet->body;
  if (packet->type == Type::VaultStart) return closed<ToVault>(in, get_vault_start(in));
  if (packet->type == Type::VaultGate) return closed<ToVault>(in, VaultGate{});
  if (packet->type == Type::VaultCredential) return closed<ToVault>(in, get_vault_credential(in));
  return unexpected_type();
}

Result<FromVault> decode_from_vault(std::string_view bytes) {
  auto packet = open_packet(bytes);
  if (!packet) return fail(std::move(packet));
  Reader& in = packet->body;
  if (packet->type == Type::Ready) return closed<FromVault>(in, Ready{});
  if (packet->type == Type::VaultEvent) return closed<FromVault>(in, VaultEvent{get_event(in)});
  if (packet->type == Type::CredentialLoaded) return closed<FromVault>(in, get_credential_loaded(in));
  return unexpected_type();
}

}  // namespace sallyport::wire
