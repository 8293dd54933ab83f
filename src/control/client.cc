#include "control/client.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "base/random.h"
#include "os/unix_socket.h"
#include "wire/sealed.h"

namespace sallyport::control {
namespace {

// How long a warden may take to end after its last word, before it is killed: it may have a clone to remove.
constexpr std::chrono::milliseconds kWardenEndLimit{60'000};

std::unexpected<Error> warden_died() {
  return fail(Reason::SessionEnded,
              "the warden (sallyportd) died, and the sandbox with it. Nothing is left running: "
              "run the same command again");
}

}  // namespace

Result<Client> Client::start_warden() {
  auto program = os::find_own_program("sallyportd");
  if (!program) return fail(std::move(program));
  auto sockets = os::socket_pair(os::SocketKind::Packet);
  if (!sockets) return fail(std::move(sockets));
  auto& [ours, theirs] = *sockets;
  if (auto status = os::set_nonblocking(ours.get()); !status) return fail(Result<void>(status));

  os::SpawnSpec spec;
  spec.program = *program;
  spec.argv = {"sallyportd", "--embedded"};
  // The canary is what the pre-flight looks for inside: a variable of ours that must not come along.
  spec.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                      fmt::format("{}={}", session::kCanaryVariable, random_hex(16))};
  spec.descriptors = {{theirs.get(), kEmbeddedSocketFd}, {STDERR_FILENO, STDERR_FILENO}};
  spec.working_directory = "/";
  spec.grouping = os::Grouping::NewSession;
  auto child = os::spawn(spec);
  if (!child) return fail(std::move(child));
  return Client(std::move(*child), std::move(ours));
}

Status Client::start(const session::Request& request, std::array<int, 3> stdio) {
  return send_request(Start{}, encode_request(request), {stdio.begin(), stdio.end()});
}

Status Client::serve(const session::ServeRequest& request) {
  return send_request(Serve{}, encode_serve_request(request), {});
}

Status Client::send_request(const ToWarden& message, std::string_view request, std::vector<int> more_fds) {
  if (request.size() > kMaxRequestBytes) {
    return fail(Reason::Internal,
                fmt::format("the command line and its environment are over {} bytes", kMaxRequestBytes));
  }
  auto file = wire::to_memfd(request);
  if (!file) return fail(std::move(file));
  more_fds.insert(more_fds.begin(), file->get());
  Status sent = os::send_packet(socket_.get(), encode(message), more_fds);
  if (!sent && sent.error().reason == Reason::SessionEnded) return warden_died();
  return sent;
}

Status Client::signal(int number) {
  return os::send_packet(socket_.get(), encode(ToWarden(Signal{number})));
}

Result<std::optional<FromWarden>> Client::receive() {
  auto packet = os::recv_packet(socket_.get());
  if (!packet) return fail(std::move(packet));
  if (!*packet) return std::nullopt;
  if ((*packet)->end) return warden_died();
  auto message = decode_from_warden((*packet)->bytes);
  if (!message) return fail(std::move(message));
  return std::move(*message);
}

void Client::wait() {
  auto ended = os::wait_child_within(warden_, kWardenEndLimit);
  if (ended && *ended) return;
  (void)os::kill_child(warden_, SIGKILL);
  (void)os::wait_child(warden_);
}

}  // namespace sallyport::control
