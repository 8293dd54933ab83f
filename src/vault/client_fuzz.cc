// The gate's side of a lane in front of a vault that sends anything: the real client on a real socket. What
// it accepts keeps to what the vault itself announced.

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "os/unix_socket.h"
#include "vault/client.h"
#include "vault/lane.h"

namespace sallyport::vault {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

upstream::Request request() {
  return {.request_id = "r1",
          .host = policy::HostName::parse("forge.test").value(),
          .method = "GET",
          .target = "/acme/widget/info/refs?service=git-upload-pack"};
}

// The lane that the client handed over; all that fits its buffer is said at once, and then nothing more.
void play_vault(const Fd& channel, std::string_view bytes) {
  auto packet = os::recv_packet(channel.get());
  require(packet && *packet && (*packet)->fds.size() == 1 && (*packet)->bytes == kLaneHello);
  const Fd& lane = (*packet)->fds[0];
  require(::write(lane.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  // The request is read, so that closing does not reset it.
  std::array<char, 4096> piece;
  (void)::read(lane.get(), piece.data(), piece.size());
}

net::Task<> talk(net::Worker& worker, std::string_view bytes) {
  auto pair = os::socket_pair(os::SocketKind::Packet).value();
  const auto client = Client::make(worker, "s1");
  client->use_channel(std::move(pair.first));
  auto exchange = co_await client->open(request());
  require(exchange.has_value());
  play_vault(pair.second, bytes);

  auto head = co_await (*exchange)->read_head();
  std::uint64_t body = 0;
  bool whole = false;
  while (head) {
    std::array<char, 1000> piece;
    const auto got = co_await (*exchange)->read_body(piece);
    if (!got) break;
    whole = *got == 0;
    if (whole) break;
    body += *got;
    require(body <= bytes.size());
    if (head->body_bytes) require(body <= *head->body_bytes);
  }
  if (head) require(head->status >= 200 && head->status <= 599);
  if (whole && head->body_bytes) require(body == *head->body_bytes);
  worker.stop();
}

}  // namespace
}  // namespace sallyport::vault

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // More would not fit the socket's buffer, and the lane's own limits are far below.
  constexpr std::size_t kMaxBytes = 100'000;
  if (size > kMaxBytes) return 0;
  std::signal(SIGPIPE, SIG_IGN);
  sallyport::net::Worker worker;
  worker.spawn("talk", sallyport::vault::talk(worker, {reinterpret_cast<const char*>(data), size}));
  worker.run();
  return 0;
}
