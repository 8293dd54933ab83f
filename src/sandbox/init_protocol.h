// What the warden and sallyport-init, the first program inside a sandbox, say to each other over their
// SOCK_SEQPACKET socket, one message a packet. Once the workload runs, a hostile program may have taken the
// other end over: each side decodes strictly, and the warden never believes more than "it says it ended".
//
//   warden:  Phase1 (one descriptor: the packed Workload)     init:  Passed or Failed
//            Phase2                                                  Passed or Failed
//            Go                                                      Started
//            ForwardSignal, Resume                                   Stopped, Exited
//            Exec (four descriptors)                                 Started or Refused; Exited
//
// After Failed init ends, and so it does after its own command's Exited. A sandbox without a command of its
// own runs what Exec brings, any number of times. When the warden's end closes, init ends, and everything
// with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/endpoint.h"

namespace sallyport::sandbox {

// The most elements of each list below.
inline constexpr std::uint32_t kMaxListed = 512;
// Of one path, address list entry or probe line.
inline constexpr std::size_t kMaxTextBytes = 4096;
// Arguments and environment of the workload; the kernel's own limit is lower.
inline constexpr std::size_t kMaxWorkloadBytes = 8 * 1024 * 1024;

// Commands of Exec that run at once in one sandbox.
inline constexpr std::size_t kMaxCommands = 64;

// Which of the sandbox's commands is meant: its own, or the number that Exec gave.
using CommandId = std::uint32_t;
inline constexpr CommandId kOwnCommand = 0;

// What to run. Too big for a packet, so it travels in a memory file (pack_workload).
struct Workload {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=VALUE, the whole of it
  std::string cwd;
};

enum class Terminal : std::uint8_t { None, Stdin };  // Stdin: descriptor 0 is our pty

// Whose uid 0 a sandbox sees: in a user namespace of its own nobody's, in most containers the host's.
enum class Users : std::uint8_t { Own, Hosts };

struct ExpectedMount {
  std::string path;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

// Sockets that wait outside and must never hear anything (decoys.h).
struct DecoyList {
  std::vector<os::Endpoint> tcp;
  std::vector<os::Endpoint> udp;
  std::string abstract_name;  // without the leading NUL
};

// ---- warden -> init ----

// Before there are routes: nothing may be reachable. One descriptor: the packed Workload, whose argv is empty
// when the sandbox has no command of its own.
struct Phase1 {
  Terminal terminal = Terminal::None;
  Users users = Users::Own;
  std::vector<os::Endpoint> unreachable;  // besides the decoys
  DecoyList decoys;
  std::vector<ExpectedMount> mounts;
  std::string canary;  // a random value that stands in the warden's environment, and must not have come along
};
// With the doors open: whatever answers must be ours.
struct Phase2 {
  std::vector<os::Endpoint> must_be_door;  // these must answer
  DecoyList decoys;                        // these need not, but if one does, it must be the door
  std::string probe_line;                  // sent as it is, newline included
  std::string door_line;                   // expected as it is
};
// The sandbox's own command is started, if it has one.
struct Go {};
// After Go: another command. Four descriptors: its packed Workload, then its standard input, output and
// error. With Terminal::Stdin these are a pty's, which controls it.
struct Exec {
  CommandId command = 1;
  Terminal terminal = Terminal::None;
};
// To the command's process group: one of kForwardedSignals, or SIGKILL.
struct ForwardSignal {
  CommandId command = kOwnCommand;
  std::uint8_t signal = 0;
};
// After Stopped: the own command goes on, in the foreground.
struct Resume {};

// ---- init -> warden ----

// Each pre-flight check by its name in docs/sandbox.md.
enum class Check : std::uint8_t {
  Setup,  // not a leak: the message could not be carried out
  Interfaces,
  Unreachable,
  Privileges,
  UidMap,
  SystemCalls,
  SocketFamilies,
  HostSockets,
  AbstractSocket,
  ProcSys,
  Mounts,
  Descriptors,
  Canary,
  Door,
};
std::string_view name(Check check);

struct Passed {
  std::uint8_t phase = 0;  // 1 or 2
};
struct Failed {
  Check check = Check::Setup;
  std::string detail;
};
// Go was carried out (kOwnCommand), or that Exec was.
struct Started {
  CommandId command = kOwnCommand;
};
// That Exec was not, and why: too many run, or the sandbox's processes leave no room.
struct Refused {
  CommandId command = 1;
  std::string detail;
};
// The own command alone: others stop and go on within their own terminals.
struct Stopped {
  std::uint8_t signal = 0;
};
struct Exited {
  CommandId command = kOwnCommand;
  std::uint8_t code = 0;    // when signal is 0
  std::uint8_t signal = 0;  // what killed it
  // As a shell gives it.
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

using ToInit = std::variant<Phase1, Phase2, Go, ForwardSignal, Resume, Exec>;
using FromInit = std::variant<Passed, Failed, Started, Stopped, Exited, Refused>;

std::string encode(const ToInit& message);
std::string encode(const FromInit& message);
Result<ToInit> decode_to_init(std::string_view bytes);
Result<FromInit> decode_from_init(std::string_view bytes);

// SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH.
bool is_forwarded(int signal);

// A sealed memory file with the workload; for the descriptor of Phase1.
Result<Fd> pack_workload(const Workload& workload);
Result<Workload> unpack_workload(const Fd& file);

}  // namespace sallyport::sandbox
