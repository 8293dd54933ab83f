#include "os/socket_owner.h"

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/random.h"
#include "os/endpoint.h"
#include "os/listener.h"
#include "os/unix_socket.h"

namespace sallyport::os {
namespace {

// One answer is a fixed head and a few attributes.
constexpr std::size_t kAnswerBytes = 8192;

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

Question question_about(const Endpoint& source, const Endpoint& destination) {
  Question question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  // Whoever asked on this socket before us may have left an answer behind.
  const std::string chance = random_bytes(sizeof question.header.nlmsg_seq);
  std::memcpy(&question.header.nlmsg_seq, chance.data(), sizeof question.header.nlmsg_seq);
  inet_diag_req_v2& body = question.body;
  body.sdiag_family = static_cast<std::uint8_t>(source.family);
  body.sdiag_protocol = IPPROTO_TCP;
  body.id.idiag_sport = htons(source.port);
  body.id.idiag_dport = htons(destination.port);
  std::memcpy(body.id.idiag_src, source.address.data(), sizeof body.id.idiag_src);
  std::memcpy(body.id.idiag_dst, destination.address.data(), sizeof body.id.idiag_dst);
  body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

// What the kernel says of the one socket. It answers before it returns from send().
Result<inet_diag_msg> ask(int diagnosis, const Question& question) {
  if (::send(diagnosis, &question, sizeof question, 0) != static_cast<ssize_t>(sizeof question)) {
    return fail_errno(Reason::Internal, "sock_diag");
  }
  alignas(nlmsghdr) char bytes[kAnswerBytes];
  while (true) {
    const ssize_t got = ::recv(diagnosis, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(Reason::Internal, "sock_diag, answer");
    const auto* header = reinterpret_cast<const nlmsghdr*>(bytes);
    if (!mnl_nlmsg_ok(header, static_cast<int>(got))) return fail(Reason::Internal, "sock_diag: malformed");
    if (header->nlmsg_seq != question.header.nlmsg_seq) continue;
    if (header->nlmsg_type == NLMSG_ERROR && mnl_nlmsg_get_payload_len(header) >= sizeof(nlmsgerr)) {
      errno = -static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(header))->error;
      return fail_errno(errno == ENOENT ? Reason::ClientClosed : Reason::Internal, "sock_diag");
    }
    if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        mnl_nlmsg_get_payload_len(header) < sizeof(inet_diag_msg)) {
      return fail(Reason::Internal, "sock_diag: unexpected answer");
    }
    inet_diag_msg answer{};
    std::memcpy(&answer, mnl_nlmsg_get_payload(header), sizeof answer);
    return answer;
  }
}

}  // namespace

Result<Fd> open_socket_diagnosis() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!socket) return fail_errno(Reason::Internal, "socket NETLINK_SOCK_DIAG");
  return socket;
}

Result<uid_t> peer_owner(int diagnosis, int connection) {
  const auto ours = local_endpoint(connection);
  if (!ours) return fail(Result(ours));
  const auto theirs = peer_endpoint(connection);
  if (!theirs) return fail(Result(theirs));
  const auto socket = ask(diagnosis, question_about(*theirs, *ours));
  if (!socket) return fail(Result(socket));
  // Of a socket without a process the kernel says uid 0.
  if (socket->idiag_state != TCP_ESTABLISHED || socket->idiag_inode == 0) {
    return fail(Reason::ClientClosed, "before it was known whose connection it is");
  }
  // As long as our end stands, no other socket can have been given the peer's address and port.
  if (const auto still = peer_endpoint(connection); !still) return fail(Result(still));
  return uid_t{socket->idiag_uid};
}

Status check_socket_diagnosis(int diagnosis) {
  auto listener = open_listener(*endpoint_from("127.0.0.1", 0), ListenerKind::Tcp);
  if (!listener) return fail(std::move(listener));
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address = socket_address(*endpoint_from("127.0.0.1", listener->port));
  if (!client || ::connect(client.get(), address.get(), address.length) != 0) {
    return fail_errno(Reason::Internal, "a connection to ourselves");
  }
  const Fd accepted(::accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!accepted) return fail_errno(Reason::Internal, "a connection to ourselves");
  const auto owner = peer_owner(diagnosis, accepted.get());
  if (owner && *owner == ::geteuid()) return {};
  return fail(Reason::Internal,
              "the kernel does not say whose a connection is, so nobody could be kept from spending your "
              "credentials: it must have CONFIG_INET_TCP_DIAG (modprobe tcp_diag)" +
                  (owner ? std::string() : "; " + owner.error().detail));
}

}  // namespace sallyport::os
