#include "sandbox/init_protocol.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "wire/codec.h"
#include "wire/sealed.h"

namespace sallyport::sandbox {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMaxDetailBytes = 1024;

constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

enum class ToInitTag : std::uint8_t { Phase1 = 1, Phase2, Go, ForwardSignal, Resume, Exec };
enum class FromInitTag : std::uint8_t { Passed = 1, Failed, Started, Stopped, Exited, Refused };

constexpr std::string_view kCheckNames[] = {
    "setup",           "interfaces",   "unreachable",     "privileges", "uid-map", "system-calls",
    "socket-families", "host-sockets", "abstract-socket", "proc-sys",   "mounts",  "descriptors",
    "canary",          "door",
};
static_assert(std::size(kCheckNames) == static_cast<std::size_t>(Check::Door) + 1);

void put(wire::Writer& out, const os::Endpoint& endpoint) {
  out.u8(endpoint.family == AF_INET6 ? 6 : 4);
  for (const std::uint8_t byte : endpoint.address) out.u8(byte);
  out.u16(endpoint.port);
}

os::Endpoint get_endpoint(wire::Reader& in) {
  os::Endpoint endpoint;
  const std::uint8_t version = in.u8();
  if (version != 4 && version != 6) in.refuse();
  endpoint.family = version == 6 ? AF_INET6 : AF_INET;
  for (std::uint8_t& byte : endpoint.address) byte = in.u8();
  if (version == 4 && std::ranges::any_of(endpoint.address.begin() + 4, endpoint.address.end(),
                                          [](std::uint8_t byte) { return byte != 0; })) {
    in.refuse();
  }
  endpoint.port = in.u16();
  return endpoint;
}

void put(wire::Writer& out, const std::vector<os::Endpoint>& endpoints) {
  out.u32(static_cast<std::uint32_t>(endpoints.size()));
  for (const os::Endpoint& endpoint : endpoints) put(out, endpoint);
}

std::vector<os::Endpoint> get_endpoints(wire::Reader& in) {
  std::vector<os::Endpoint> endpoints(in.count(kMaxListed));
  for (os::Endpoint& endpoint : endpoints) endpoint = get_endpoint(in);
  return endpoints;
}

void put(wire::Writer& out, const DecoyList& decoys) {
  put(out, decoys.tcp);
  put(out, decoys.udp);
  out.string(decoys.abstract_name);
}

DecoyList get_decoys(wire::Reader& in) {
  DecoyList decoys;
  decoys.tcp = get_endpoints(in);
  decoys.udp = get_endpoints(in);
  decoys.abstract_name = in.string(kMaxTextBytes);
  return decoys;
}

// Of a command that Exec brings.
CommandId get_command(wire::Reader& in) {
  const CommandId command = in.u32();
  if (command == kOwnCommand) in.refuse();
  return command;
}

struct EncodeToInit {
  wire::Writer& out;

  void tag(ToInitTag value) const { out.u8(static_cast<std::uint8_t>(value)); }
  void operator()(const Phase1& message) const {
    tag(ToInitTag::Phase1);
    out.enumerator(message.terminal).enumerator(message.users);
    put(out, message.unreachable);
    put(out, message.decoys);
    out.u32(static_cast<std::uint32_t>(message.mounts.size()));
    for (const ExpectedMount& mount : message.mounts) {
      out.string(mount.path).u64(mount.device).u64(mount.inode);
    }
    out.string(message.canary);
  }
  void operator()(const Phase2& message) const {
    tag(ToInitTag::Phase2);
    put(out, message.must_be_door);
    put(out, message.decoys);
    out.string(message.probe_line).string(message.door_line);
  }
  void operator()(const Go&) const { tag(ToInitTag::Go); }
  void operator()(const ForwardSignal& message) const {
    tag(ToInitTag::ForwardSignal);
    out.u32(message.command).u8(message.signal);
  }
  void operator()(const Resume&) const { tag(ToInitTag::Resume); }
  void operator()(const Exec& message) const {
    tag(ToInitTag::Exec);
    out.u32(message.command).enumerator(message.terminal);
  }
};

struct EncodeFromInit {
  wire::Writer& out;

  void tag(FromInitTag value) const { out.u8(static_cast<std::uint8_t>(value)); }
  void operator()(const Passed& message) const {
    tag(FromInitTag::Passed);
    out.u8(message.phase);
  }
  void operator()(const Failed& message) const {
    tag(FromInitTag::Failed);
    out.u8(static_cast<std::uint8_t>(message.check));
    out.string(std::string_view(message.detail).substr(0, kMaxDetailBytes));
  }
  void operator()(const Started& message) const {
    tag(FromInitTag::Started);
    out.u32(message.command);
  }
  void operator()(const Stopped& message) const {
    tag(FromInitTag::Stopped);
    out.u8(message.signal);
  }
  void operator()(const Exited& message) const {
    tag(FromInitTag::Exited);
    out.u32(message.command).u8(message.code).u8(message.signal);
  }
  void operator()(const Refused& message) const {
    tag(FromInitTag::Refused);
    out.u32(message.command);
    out.string(std::string_view(message.detail).substr(0, kMaxDetailBytes));
  }
};

Phase1 get_phase1(wire::Reader& in) {
  Phase1 message;
  message.terminal = in.enumerator(Terminal::Stdin);
  message.users = in.enumerator(Users::Hosts);
  message.unreachable = get_endpoints(in);
  message.decoys = get_decoys(in);
  message.mounts.resize(in.count(kMaxListed));
  for (ExpectedMount& mount : message.mounts) {
    mount.path = in.string(kMaxTextBytes);
    mount.device = in.u64();
    mount.inode = in.u64();
  }
  message.canary = in.string(kMaxTextBytes);
  return message;
}

Phase2 get_phase2(wire::Reader& in) {
  Phase2 message;
  message.must_be_door = get_endpoints(in);
  message.decoys = get_decoys(in);
  message.probe_line = in.string(kMaxTextBytes);
  message.door_line = in.string(kMaxTextBytes);
  return message;
}

ForwardSignal get_signal(wire::Reader& in) {
  ForwardSignal message;
  message.command = in.u32();
  message.signal = in.u8();
  if (!is_forwarded(message.signal) && message.signal != SIGKILL) in.refuse();
  return message;
}

Exec get_exec(wire::Reader& in) {
  Exec message;
  message.command = get_command(in);
  message.terminal = in.enumerator(Terminal::Stdin);
  return message;
}

Passed get_passed(wire::Reader& in) {
  const Passed message{in.u8()};
  if (message.phase != 1 && message.phase != 2) in.refuse();
  return message;
}

Failed get_failed(wire::Reader& in) {
  Failed message;
  message.check = in.enumerator(Check::Door);
  message.detail = in.string(kMaxDetailBytes);
  return message;
}

Stopped get_stopped(wire::Reader& in) {
  const Stopped message{in.u8()};
  if (message.signal == 0 || message.signal >= NSIG) in.refuse();
  return message;
}

Exited get_exited(wire::Reader& in) {
  Exited message;
  message.command = in.u32();
  message.code = in.u8();
  message.signal = in.u8();
  if (message.signal >= NSIG || (message.signal != 0 && message.code != 0)) in.refuse();
  return message;
}

Refused get_refused(wire::Reader& in) {
  Refused message;
  message.command = get_command(in);
  message.detail = in.string(kMaxDetailBytes);
  return message;
}

std::unexpected<Error> malformed(const char* who) {
  return fail(Reason::Internal, std::string("malformed message from ") + who);
}

void put(wire::Writer& out, const std::vector<std::string>& strings) {
  out.u32(static_cast<std::uint32_t>(strings.size()));
  for (const std::string& text : strings) out.string(text);
}

std::vector<std::string> get_strings(wire::Reader& in) {
  constexpr std::uint32_t kMaxStrings = kMaxWorkloadBytes / 4;  // each takes four bytes at least
  std::vector<std::string> strings;
  for (std::uint32_t left = in.count(kMaxStrings); left > 0 && in.ok(); --left) {
    strings.push_back(in.string(kMaxWorkloadBytes));
    if (strings.back().contains('\0')) in.refuse();
  }
  return strings;
}

}  // namespace

std::string_view name(Check check) {
  return kCheckNames[static_cast<std::size_t>(check)];
}

bool is_forwarded(int signal) {
  return std::ranges::find(kForwarded, signal) != std::end(kForwarded);
}

std::string encode(const ToInit& message) {
  wire::Writer out;
  out.u8(kVersion);
  std::visit(EncodeToInit{out}, message);
  return out.take();
}

std::string encode(const FromInit& message) {
  wire::Writer out;
  out.u8(kVersion);
  std::visit(EncodeFromInit{out}, message);
  return out.take();
}

Result<ToInit> decode_to_init(std::string_view bytes) {
  wire::Reader in(bytes);
  if (in.u8() != kVersion) return malformed("the warden");
  ToInit message = Go{};
  const std::uint8_t tag = in.u8();
  if (tag == static_cast<std::uint8_t>(ToInitTag::Phase1)) {
    message = get_phase1(in);
  } else if (tag == static_cast<std::uint8_t>(ToInitTag::Phase2)) {
    message = get_phase2(in);
  } else if (tag == static_cast<std::uint8_t>(ToInitTag::ForwardSignal)) {
    message = get_signal(in);
  } else if (tag == static_cast<std::uint8_t>(ToInitTag::Resume)) {
    message = Resume{};
  } else if (tag == static_cast<std::uint8_t>(ToInitTag::Exec)) {
    message = get_exec(in);
  } else if (tag != static_cast<std::uint8_t>(ToInitTag::Go)) {
    in.refuse();
  }
  if (!in.finished()) return malformed("the warden");
  return message;
}

Result<FromInit> decode_from_init(std::string_view bytes) {
  wire::Reader in(bytes);
  if (in.u8() != kVersion) return malformed("sallyport-init");
  FromInit message = Started{};
  const std::uint8_t tag = in.u8();
  if (tag == static_cast<std::uint8_t>(FromInitTag::Passed)) {
    message = get_passed(in);
  } else if (tag == static_cast<std::uint8_t>(FromInitTag::Failed)) {
    message = get_failed(in);
  } else if (tag == static_cast<std::uint8_t>(FromInitTag::Stopped)) {
    message = get_stopped(in);
  } else if (tag == static_cast<std::uint8_t>(FromInitTag::Exited)) {
    message = get_exited(in);
  } else if (tag == static_cast<std::uint8_t>(FromInitTag::Refused)) {
    message = get_refused(in);
  } else if (tag == static_cast<std::uint8_t>(FromInitTag::Started)) {
    message = Started{in.u32()};
  } else {
    in.refuse();
  }
  if (!in.finished()) return malformed("sallyport-init");
  return message;
}

Result<Fd> pack_workload(const Workload& workload) {
  wire::Writer out;
  out.u8(kVersion);
  put(out, workload.argv);
  put(out, workload.environment);
  out.string(workload.cwd);
  const std::string bytes = out.take();
  if (bytes.size() > kMaxWorkloadBytes) {
    return fail(Reason::BadRequest, "the command line and environment are too long");
  }
  return wire::to_memfd(bytes);
}

Result<Workload> unpack_workload(const Fd& file) {
  auto bytes = wire::read_memfd(file, kMaxWorkloadBytes);
  if (!bytes) return fail(std::move(bytes));
  wire::Reader in(*bytes);
  if (in.u8() != kVersion) return malformed("the warden");
  Workload workload;
  workload.argv = get_strings(in);
  workload.environment = get_strings(in);
  workload.cwd = in.string(kMaxTextBytes);
  if (!in.finished() || workload.cwd.empty()) return malformed("the warden");
  return workload;
}

}  // namespace sallyport::sandbox
