#include "egress/hello_peek.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "net/readiness.h"
#include "os/unix_socket.h"

namespace sallyport::egress {
namespace {

// What can be read now; nullopt: nothing. Not in a coroutine, whose buffer would live as long as it waits.
std::optional<Result<bool>> read_now(net::Readiness& socket, HelloReader& reader) {
  std::array<char, 4096> buffer;
  const std::size_t room = std::min(buffer.size(), kMaxClientHelloBytes - reader.raw().size());
  const auto got = ::recv(socket.fd(), buffer.data(), room, MSG_DONTWAIT);
  if (got > 0) return reader.add({buffer.data(), static_cast<std::size_t>(got)});
  if (got == 0) return socket.gone("ended in the middle of its ClientHello");
  if (os::would_block(errno) || errno == EINTR) return std::nullopt;
  return socket.gone("recv: " + errno_text(errno));
}

net::Task<Result<bool>> read_more(net::Readiness& socket, HelloReader& reader) {
  for (;;) {
    if (auto read = read_now(socket, reader)) co_return *std::move(read);
    auto status = co_await socket.wait(net::Readiness::For::Reading);
    if (!status) co_return fail(std::move(status));
  }
}

void send_alert_to(int socket, Reason reason) {
  // RFC 8446, 6: a record of an alert, fatal.
  constexpr char kProtocolVersion = 70;
  constexpr char kInternalError = 80;
  constexpr char kUnrecognizedName = 112;
  char description = kUnrecognizedName;
  if (reason == Reason::NotTls) description = kProtocolVersion;
  if (reason == Reason::TooMany) description = kInternalError;
  const std::array<char, 7> alert{21, 3, 3, 0, 2, 2, description};
  static_cast<void>(::send(socket, alert.data(), alert.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace

net::Task<std::expected<PeekedHello, HandshakeRefusal>> peek_hello(net::Worker& worker, Fd socket,
                                                                   std::string already_read,
                                                                   net::Clock::duration limit) {
  const auto until = net::Clock::now() + limit;
  net::Readiness client(worker, std::move(socket), net::Peer::Client);
  client.limit_total(limit);
  HelloReader reader;
  Result<bool> whole = reader.add(already_read);
  while (whole && !*whole) whole = co_await read_more(client, reader);
  if (!whole) co_return std::unexpected(HandshakeRefusal{std::move(whole).error(), ""});
  auto hello = parse_client_hello(reader.body());
  if (!hello) {
    send_alert_to(client.fd(), hello.error().error.reason);
    co_return std::unexpected(std::move(hello).error());
  }
  co_return PeekedHello{client.release(), reader.take_raw(), *std::move(hello), until};
}

void send_alert(const Fd& socket, Reason reason) {
  send_alert_to(socket.get(), reason);
}

}  // namespace sallyport::egress
