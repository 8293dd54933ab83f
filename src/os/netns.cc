#include "os/netns.h"

#include <fcntl.h>
#include <signal.h>

#include <string_view>

#include "base/text.h"
#include "os/netns_helper.h"
#include "os/unix_socket.h"

namespace sallyport::os {

namespace {

constexpr std::string_view kFailed = "failed ";

std::unexpected<Error> helper_died() {
  return fail(Reason::ProcessDied, "sallyport-netns, which makes the sandbox's network, died");
}

// The helper's answer, or its error.
Result<Packet> receive_answer(int control) {
  auto packet = recv_packet_within(control, kNamespaceTimeout);
  if (!packet) return fail(Reason::Internal, "sallyport-netns: " + packet.error().detail);
  if (packet->end) return helper_died();
  if (packet->bytes.starts_with(kFailed)) {
    return fail(Reason::Internal, packet->bytes.substr(kFailed.size()));
  }
  return packet;
}

std::unexpected<Error> unexpected_answer(const Packet& packet) {
  return fail(Reason::Internal, "sallyport-netns: unexpected answer: " + escaped(packet.bytes));
}

std::optional<Listener> parse_listener(std::string_view line, Fd fd) {
  const auto words = split(line, ' ');
  if (words.size() != 3) return std::nullopt;
  const auto port = parse_decimal(words[2], 65535);
  if ((words[0] != "tcp" && words[0] != "udp") || (words[1] != "4" && words[1] != "6") || !port) {
    return std::nullopt;
  }
  return Listener{.fd = std::move(fd),
                  .kind = words[0] == "tcp" ? ListenerKind::Tcp : ListenerKind::Udp,
                  .family = static_cast<sa_family_t>(words[1] == "4" ? AF_INET : AF_INET6),
                  .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace

Result<NamespaceBuilder> NamespaceBuilder::start(const Spec& spec) {
  // Opened with our rights: the uid to become may not be able to reach the folder.
  const Fd program(::open(spec.helper.c_str(), O_PATH | O_CLOEXEC));
  if (!program) return fail_errno(Reason::Internal, "open " + spec.helper);
  auto ends = socket_pair(SocketKind::Packet);
  if (!ends) return fail(std::move(ends));
  std::vector<std::string> argv{"sallyport-netns"};
  std::vector<DescriptorMap> descriptors{{ends->second.get(), kHelperControlFd}};
  if (spec.join_net) {
    argv.emplace_back(kJoinNet);
    descriptors.push_back({*spec.join_net, kJoinNetFd});
  }
  if (spec.join_user) {
    argv.emplace_back(kJoinUser);
    descriptors.push_back({*spec.join_user, kJoinUserFd});
  }
  auto child = spawn({.program = spec.helper,
                      .program_fd = program.get(),
                      .argv = argv,
                      .environment = {},
                      .descriptors = descriptors,
                      .become = spec.join_net ? std::nullopt : spec.become,
                      .user_namespace = std::nullopt,
                      .net_namespace = std::nullopt,
                      .working_directory = "/",
                      .parent_death_signal = SIGKILL});
  if (!child) return fail(std::move(child));
  return NamespaceBuilder(std::move(*child), std::move(ends->first));
}

NamespaceBuilder::~NamespaceBuilder() {
  if (!helper_.pidfd) return;
  static_cast<void>(kill_child(helper_, SIGKILL));
  static_cast<void>(wait_child(helper_));
}

Result<Namespace> NamespaceBuilder::namespaces() {
  auto answer = receive_answer(control_.get());
  if (!answer) return fail(std::move(answer));
  const bool with_nflog = answer->bytes == "namespaces nflog";
  if (!with_nflog && answer->bytes != "namespaces") return unexpected_answer(*answer);
  if (answer->fds.size() != (with_nflog ? 5 : 4)) return unexpected_answer(*answer);
  Namespace result{.user = std::move(answer->fds[0]),
                   .net = std::move(answer->fds[1]),
                   .link_query = std::move(answer->fds[2]),
                   .link_watch = std::move(answer->fds[3]),
                   .nflog = std::nullopt};
  if (with_nflog) result.nflog = std::move(answer->fds[4]);
  return result;
}

Result<Doors> NamespaceBuilder::open_doors(DoorWish wish, const std::optional<Rate>& new_connections) {
  std::string request = "open direct";
  if (wish == DoorWish::Redirect) {
    const Rate rate = new_connections.value_or(Rate{});  // zeros: unlimited
    request = "open redirect " + std::to_string(rate.amount) + ' ' + std::to_string(rate.burst);
  }
  if (!send_packet(control_.get(), request)) return helper_died();
  auto answer = receive_answer(control_.get());
  if (!answer) return fail(std::move(answer));

  const auto lines = split(answer->bytes, '\n');
  constexpr std::string_view kDirect = "doors direct ";
  Doors doors;
  if (lines[0].starts_with(kDirect)) {
    doors.mode = DoorMode::Direct;
    doors.fallback_reason = lines[0].substr(kDirect.size());
  } else if (lines[0] != "doors redirect") {
    return unexpected_answer(*answer);
  }
  if (lines.size() < 2 || lines.size() - 1 != answer->fds.size()) return unexpected_answer(*answer);
  for (std::size_t i = 0; i < answer->fds.size(); ++i) {
    auto listener = parse_listener(lines[i + 1], std::move(answer->fds[i]));
    if (!listener) return unexpected_answer(*answer);
    doors.listeners.push_back(std::move(*listener));
  }

  auto ended = wait_child_within(helper_, kNamespaceTimeout);
  if (!ended) return fail(std::move(ended));
  if (!*ended) return fail(Reason::Internal, "sallyport-netns does not end");
  helper_.pidfd.reset();
  return doors;
}

}  // namespace sallyport::os
