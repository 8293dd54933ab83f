// The life of the gate and of the vault, from main() to their end. Started by the warden with its control
// socket as descriptor 3,
//
//   PROGRAM [--uid N --gid N]      the ids to take on, when started as root
//
// each reads what it needs from files, locks itself in, and serves the sessions that the warden opens until
// the warden's end closes.
#pragma once

#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "net/packet_channel.h"
#include "net/worker.h"
#include "os/confine.h"
#include "os/unix_socket.h"
#include "upstream/environment.h"
#include "wire/messages.h"

namespace sallyport {

struct ConfinedProgram {
  const char* name;
  os::Role role;
  rlim_t max_open_files;
  rlim_t max_locked_bytes = 0;  // 0: as it is
};

inline void complain(const ConfinedProgram& program, const Error& error) {
  std::fprintf(stderr, "%s: %s\n", program.name, error.detail.c_str());
}

[[noreturn]] inline void end_confined(const ConfinedProgram& program, const Status& outcome) {
  if (!outcome) complain(program, outcome.error());
  // Sessions that are still served borrow from each other in ways that no order of destruction fits; the
  // kernel closes what is open, and hands no page on without clearing it.
  std::_Exit(outcome ? EXIT_SUCCESS : EXIT_FAILURE);
}

inline Result<std::optional<os::Ids>> prepare_confined(const ConfinedProgram& program, int argc,
                                                       char** argv) {
  // First of all: nothing may look into this process, not even while it starts.
  if (Status status = os::deny_tracing(); !status) return fail(std::move(status));
  // A peer that goes while we write is an error value, not a signal.
  if (::signal(SIGPIPE, SIG_IGN) == SIG_ERR) return fail_errno(Reason::Internal, "signal");
  if (Status status = os::limit_resource(RLIMIT_NOFILE, program.max_open_files); !status) {
    return fail(std::move(status));
  }
  if (program.max_locked_bytes > 0) {
    Status status = os::limit_resource(RLIMIT_MEMLOCK, program.max_locked_bytes);
    if (!status) return fail(std::move(status));
  }
  return os::parse_ids(argc, argv);
}

inline Result<wire::ToService> read_message(const os::Packet& packet) {
  auto message = wire::decode_to_service(packet.bytes);
  if (message && wire::descriptor_count(*message) != packet.fds.size()) {
    return fail(Reason::Internal, "control message: another number of descriptors");
  }
  return message;
}

// Waits for the warden's first message, and reads what it asks for from files.
inline Result<upstream::Environment> load_environment(net::Worker& worker, const Fd& control) {
  auto packet = os::recv_packet_within(control.get(), wire::kStartLimit);
  if (!packet) return fail(std::move(packet));
  if (packet->end) return fail(Reason::Internal, "the warden is gone");
  auto message = read_message(*packet);
  if (!message) return fail(std::move(message));
  const auto* start = std::get_if<wire::ServiceStart>(&*message);
  if (start == nullptr) return fail(Reason::Internal, "control message: not a start");
  return upstream::Environment::load(worker, start->system_roots);
}

// The warden's socket for another session.
inline Result<Fd> opened_session(os::Packet& packet) {
  auto message = read_message(packet);
  if (!message) return fail(std::move(message));
  if (!std::holds_alternative<wire::OpenSession>(*message)) {
    return fail(Reason::Internal, "control message: a second start");
  }
  return std::move(packet.fds.front());
}

// `Session`: gate::Gate or vault::Vault. From its first message until the last of its coroutines is gone.
template <class Session>
net::Task<> serve_session(const ConfinedProgram& program, net::Worker& whole,
                          upstream::Environment& environment, Fd control) {
  net::Worker worker(net::Worker::PartOf{whole});
  auto session =
      co_await Session::begin(worker, environment, net::PacketChannel::make(worker, std::move(control)));
  Status outcome;
  if (session) {
    outcome = co_await (*session)->serve();
  } else {
    outcome = fail(std::move(session));
  }
  // A warden that ends a session while it begins is no fault.
  if (!outcome && outcome.error().reason != Reason::SessionEnded) complain(program, outcome.error());
  co_await worker.end();
}

template <class Session>
net::Task<> serve_warden(const ConfinedProgram& program, net::Worker& worker,
                         upstream::Environment& environment, Fd control, Status& outcome) {
  const auto warden = net::PacketChannel::make(worker, std::move(control));
  while (outcome) {
    auto packet = co_await warden->receive();
    if (packet && !*packet) break;
    Result<Fd> opened = packet ? opened_session(**packet) : fail(std::move(packet));
    if (opened) {
      worker.spawn("a session", serve_session<Session>(program, worker, environment, *std::move(opened)));
    } else {
      outcome = fail(std::move(opened));
    }
  }
  worker.stop();
}

template <class Session>
[[noreturn]] void run_confined(const ConfinedProgram& program, int argc, char** argv) {
  const auto ids = prepare_confined(program, argc, argv);
  if (!ids) end_confined(program, fail(Result(ids)));
  net::Worker worker;
  Fd control(os::kControlFd);
  auto environment = load_environment(worker, control);
  if (!environment) end_confined(program, fail(std::move(environment)));
  Status outcome = os::apply({.role = program.role, .become = *ids});
  if (outcome) {
    worker.spawn(program.name,
                 serve_warden<Session>(program, worker, *environment, std::move(control), outcome));
    worker.run();
  }
  end_confined(program, outcome);
}

}  // namespace sallyport
