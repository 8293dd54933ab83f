#include "net/tunnel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "os/reset.h"
#include "os/unix_socket.h"

namespace sallyport::net {
namespace {

// Never SPLICE_F_MORE: nobody knows whether more will come, and the last piece would wait for it.
constexpr unsigned kSplice = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;

// Above 0: bytes that are in the pipe now. 0: the peer's end. Below: -errno.
ssize_t splice_in(int socket, const Pipe& pipe, std::size_t room) {
  for (;;) {
    const auto got = ::splice(socket, nullptr, pipe.in.get(), nullptr, room, kSplice);
    if (got >= 0) return got;
    if (errno != EINTR) return -errno;
  }
}

// The same of a byte that stays where it is.
ssize_t peek(int socket) {
  for (;;) {
    char byte = 0;
    const auto got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got >= 0) return got;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

Result<Pipe> PipePool::take() {
  if (!pipes_.empty()) {
    Pipe pipe = std::move(pipes_.back());
    pipes_.pop_back();
    return pipe;
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(Reason::Overloaded, "pipe2");
  static_cast<void>(::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(kMaxPipeBytes)));
  return Pipe{.out = Fd(ends[0]), .in = Fd(ends[1])};
}

void PipePool::give_back(Pipe pipe) {
  if (pipes_.size() < kMaxPooledPipes) pipes_.push_back(std::move(pipe));
}

Tunnel::Tunnel(Worker& worker, PipePool& pipes, Fd client, Fd upstream, TunnelLimits limits)
    : worker_(worker),
      pipes_(pipes),
      limits_(limits),
      client_{.socket = {worker, std::move(client), Peer::Client}, .reset = TunnelEnding::ClientReset},
      upstream_{.socket = {worker, std::move(upstream), Peer::Upstream},
                .reset = TunnelEnding::UpstreamReset},
      up_{.from = client_,
          .to = upstream_,
          .max_bytes = limits.max_bytes_up,
          .cap = TunnelEnding::CapUp,
          .budget = limits.budget_up},
      down_{.from = upstream_,
            .to = client_,
            .max_bytes = limits.max_bytes_down,
            .cap = TunnelEnding::CapDown,
            .budget = limits.budget_down},
      idle_(worker, [this] { end(TunnelEnding::Idle); }),
      life_(worker, [this] { end(TunnelEnding::Life); }),
      down_ended_(worker) {}

Task<TunnelEnd> Tunnel::run(TunnelStart start) {
  if (!ending_) {
    idle_.set(limits_.idle);
    life_.set(limits_.life);
    worker_.spawn("tunnel", move_down(std::move(start.to_client)));
    co_await move(up_, std::move(start.to_upstream));
    co_await down_ended_.wait();
  }
  const TunnelEnding why = ending();
  if (why == TunnelEnding::Clean) {
    client_.socket.close();
    upstream_.socket.close();
  }
  end(why);
  co_return TunnelEnd{.why = why, .bytes_up = up_.bytes, .bytes_down = down_.bytes};
}

Task<> Tunnel::move_down(std::string early) {
  co_await move(down_, std::move(early));
  down_ended_.set();
}

Task<> Tunnel::move(Direction& direction, std::string early) {
  if (!co_await write_early(direction, std::move(early))) co_return;
  while (co_await direction.from.socket.wait(Readiness::For::Reading)) {
    if (!co_await move_burst(direction)) co_return;
  }
  end(direction.from.reset);  // unless it has ended already, which is why the wait did
}

Task<bool> Tunnel::write_early(Direction& direction, std::string early) {
  if (early.size() > direction.max_bytes) {
    end(direction.cap);
    co_return false;
  }
  std::string_view left = early;
  while (!left.empty()) {
    if (ending_) co_return false;
    const auto sent = ::send(direction.to.socket.fd(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (!co_await wait_to_write(direction, errno)) co_return false;
      continue;
    }
    left.remove_prefix(static_cast<std::size_t>(sent));
    if (count(direction, static_cast<std::size_t>(sent))) co_await direction.to.socket.let_others_run();
  }
  co_return !ending_;
}

// Moves what can be read now. The pipe is empty before every read, so it is the socket that is short then.
Task<bool> Tunnel::move_burst(Direction& direction) {
  auto pipe = pipes_.take();
  if (!pipe) {
    end(TunnelEnding::NoPipe);
    co_return false;
  }
  for (;;) {
    const auto room = static_cast<std::size_t>(
        std::min<std::uint64_t>(kMaxBytesInPipe, direction.max_bytes - direction.bytes));
    const int from = direction.from.socket.fd();
    // At the cap it is the next byte that ends the tunnel: an end there is one like any other.
    const auto got = room == 0 ? peek(from) : splice_in(from, *pipe, room);
    if (got > 0 && room > 0) {
      if (!co_await drain(direction, *pipe, static_cast<std::size_t>(got))) co_return false;
      continue;
    }
    pipes_.give_back(*std::move(pipe));
    if (got < 0 && os::would_block(static_cast<int>(-got))) co_return true;
    if (got == 0) {
      pass_end_on(direction);
    } else {
      end(got > 0 ? direction.cap : direction.from.reset);
    }
    co_return false;
  }
}

Task<bool> Tunnel::drain(Direction& direction, Pipe& pipe, std::size_t bytes) {
  while (bytes > 0) {
    const auto sent = ::splice(pipe.out.get(), nullptr, direction.to.socket.fd(), nullptr, bytes, kSplice);
    if (sent <= 0) {
      if (!co_await wait_to_write(direction, sent < 0 ? errno : EPIPE)) co_return false;
      continue;
    }
    bytes -= static_cast<std::size_t>(sent);
    if (count(direction, static_cast<std::size_t>(sent))) co_await direction.to.socket.let_others_run();
    if (ending_) co_return false;  // the descriptors are closed
  }
  co_return true;
}

// A peer that takes nothing more may have said something before it went: the other direction finds its end.
Task<bool> Tunnel::wait_to_write(Direction& direction, int error) {
  if (error == EINTR) co_return true;
  if (os::would_block(error) && co_await direction.to.socket.wait(Readiness::For::Writing)) co_return true;
  direction.to.write_failed = true;
  co_return false;
}

// True: the others must have their turn.
bool Tunnel::count(Direction& direction, std::size_t bytes) {
  direction.bytes += bytes;
  if (direction.budget != nullptr && !direction.budget->spend(Clock::now(), bytes)) {
    end(TunnelEnding::Spent);
    return false;
  }
  idle_.set(limits_.idle);
  return direction.to.socket.moved();
}

void Tunnel::pass_end_on(Direction& direction) {
  // The failed write has taken the reset away from this side, which now looks like an orderly end.
  if (direction.from.write_failed) return end(direction.from.reset);
  if (::shutdown(direction.to.socket.fd(), SHUT_WR) != 0) direction.to.write_failed = true;
}

TunnelEnding Tunnel::ending() const {
  if (ending_) return *ending_;
  if (upstream_.write_failed) return upstream_.reset;
  if (client_.write_failed) return client_.reset;
  return TunnelEnding::Clean;
}

void Tunnel::end(TunnelEnding why) noexcept {
  if (ending_) return;
  ending_ = why;
  idle_.clear();
  life_.clear();
  for (Side* side : {&client_, &upstream_}) {
    os::reset_on_close(side->socket.fd());  // of none when it is closed already
    side->socket.close();
  }
}

}  // namespace sallyport::net
