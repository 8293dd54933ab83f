// What the command line and the warden say to each other: one SOCK_SEQPACKET socket, one message a packet.
// The end of the socket on either side ends the session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "session/request.h"
#include "session/serve_request.h"

namespace sallyport::control {

// The descriptor on which an embedded warden finds the command line's socket.
inline constexpr int kEmbeddedSocketFd = 3;
// A request larger than this (an enormous command line or environment) is refused by both sides.
inline constexpr std::size_t kMaxRequestBytes = 4 * 1024 * 1024;

// ---- command line -> warden ----

// First, once. Four descriptors: the encoded request in a sealed memory file, then standard input, output and
// error.
struct Start {};
// First, once, instead of Start: a session without a sandbox. One descriptor: the encoded ServeRequest in a
// sealed memory file.
struct Serve {};
// A signal for the workload; of a session without one SIGINT and SIGTERM mean its end, and SIGHUP that the
// files shall be read again.
struct Signal {
  int number;
};

// ---- warden -> command line ----

// Something the user should know; one line for standard error.
struct Notice {
  std::string text;
};
// The workload runs.
struct Started {};
// Instead: the doors are open, ADDRESS:PORT of each that was asked for, in that order.
struct Serving {
  std::vector<std::string> addresses;
};
// Those files were read again and are in force; or not, and why.
struct Reloaded {
  std::string problem;  // "" when there is none
};
// The workload stopped itself (Ctrl-Z): the command line stops too, and sends SIGCONT when it goes on.
struct Stopped {};
// The workload ended, and everything is cleaned up.
struct Finished {
  int exit_code;  // 128 + signal when a signal ended it
  std::string summary;
};
// The session could not start, or was ended by us. Everything is cleaned up.
struct Failed {
  std::string text;  // lines for standard error
};

using ToWarden = std::variant<Start, Signal, Serve>;
using FromWarden = std::variant<Notice, Started, Stopped, Finished, Failed, Serving, Reloaded>;

std::string encode(const ToWarden& message);
std::string encode(const FromWarden& message);
Result<ToWarden> decode_to_warden(std::string_view bytes);
Result<FromWarden> decode_from_warden(std::string_view bytes);

std::string encode_request(const session::Request& request);
Result<session::Request> decode_request(std::string_view bytes);
std::string encode_serve_request(const session::ServeRequest& request);
Result<session::ServeRequest> decode_serve_request(std::string_view bytes);

}  // namespace sallyport::control
