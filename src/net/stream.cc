#include "net/stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "net/readiness.h"
#include "os/unix_socket.h"

namespace sallyport::net {
namespace {

class SocketStream final : public Stream {
 public:
  SocketStream(Worker& worker, Fd socket, Peer peer) : socket_(worker, std::move(socket), peer) {}

  Task<Status> wait_readable() override {
    for (;;) {
      if (auto status = socket_.usable(); !status) co_return status;
      char byte = 0;
      const auto got = ::recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got >= 0 || !(os::would_block(errno) || errno == EINTR)) co_return Status();  // read_some() tells
      if (auto status = co_await socket_.wait(Readiness::For::Reading); !status) co_return status;
    }
  }

  Task<Result<std::size_t>> read_some(std::span<char> into) override {
    for (;;) {
      if (auto status = socket_.usable(); !status) co_return fail(std::move(status));
      const auto got = ::recv(socket_.fd(), into.data(), into.size(), MSG_DONTWAIT);
      if (got > 0) {
        if (socket_.moved()) co_await socket_.let_others_run();
        co_return static_cast<std::size_t>(got);
      }
      if (got == 0) {
        // The failed write has taken the reset away from this side, which would look like an orderly end.
        if (write_failed_) co_return socket_.gone("reset by the peer");
        co_return std::size_t{0};
      }
      const int error = errno;
      if (error == EINTR) continue;
      if (!os::would_block(error)) co_return socket_.gone("recv: " + errno_text(error));
      if (auto status = co_await socket_.wait(Readiness::For::Reading); !status) {
        co_return fail(std::move(status));
      }
    }
  }

  Task<Status> write_all(std::string_view bytes) override {
    while (!bytes.empty()) {
      if (auto status = socket_.usable(); !status) co_return status;
      if (write_failed_) co_return socket_.gone("an earlier write failed");
      const auto sent = ::send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
        if (socket_.moved()) co_await socket_.let_others_run();
        continue;
      }
      const int error = errno;
      if (error == EINTR) continue;
      if (!os::would_block(error)) {
        write_failed_ = true;
        co_return socket_.gone("send: " + errno_text(error));
      }
      if (auto status = co_await socket_.wait(Readiness::For::Writing); !status) co_return status;
    }
    co_return Status();
  }

  Task<Status> shutdown_write() override {
    if (auto status = socket_.usable(); !status) co_return status;
    if (::shutdown(socket_.fd(), SHUT_WR) != 0) co_return socket_.gone("shutdown: " + errno_text(errno));
    co_return Status();
  }

  void stop_waiting() noexcept override { socket_.stop_waiting(); }
  void close() noexcept override { socket_.close(); }
  Fd release() override { return socket_.release(); }

  bool quiet() override {
    if (write_failed_ || !socket_.usable()) return false;
    char byte = 0;
    return ::recv(socket_.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && os::would_block(errno);
  }

  void limit_idle(Clock::duration limit) override { socket_.limit_idle(limit); }
  void limit_total(Clock::duration limit) override { socket_.limit_total(limit); }
  void no_limit() override { socket_.no_limit(); }

 private:
  Readiness socket_;
  bool write_failed_ = false;
};

}  // namespace

std::unique_ptr<Stream> make_socket_stream(Worker& worker, Fd socket, Peer peer) {
  return std::make_unique<SocketStream>(worker, std::move(socket), peer);
}

}  // namespace sallyport::net
