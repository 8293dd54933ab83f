#include "net/packet_channel.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace sallyport::net {
namespace {

namespace asio = boost::asio;

struct Queued {
  std::string bytes;
  std::vector<Fd> fds;
};

Status send_now(int socket, const Queued& message) {
  std::vector<int> numbers;
  numbers.reserve(message.fds.size());
  for (const Fd& fd : message.fds) numbers.push_back(fd.get());
  return os::send_packet(socket, message.bytes, numbers);
}

// Owned by the channel and by whoever waits on its socket, so that the channel may go at any time.
struct State {
  State(Worker& worker, Fd fd) : socket(worker.io()) {
    socket.assign(fd.get());
    (void)fd.release();
    socket.non_blocking(true);
  }

  asio::posix::stream_descriptor socket;
  std::deque<Queued> queue;  // not empty: flush_later() is under way
  std::optional<Error> broken;
};

void flush_later(const std::shared_ptr<State>& state);

void flush(const std::shared_ptr<State>& state) {
  while (!state->queue.empty()) {
    if (auto sent = send_now(state->socket.native_handle(), state->queue.front()); !sent) {
      if (sent.error().reason == Reason::Overloaded) return flush_later(state);
      state->broken = std::move(sent).error();
      state->queue.clear();
      return;
    }
    state->queue.pop_front();
  }
}

void flush_later(const std::shared_ptr<State>& state) {
  state->socket.async_wait(asio::posix::stream_descriptor::wait_write,
                           [state](const boost::system::error_code& error) {
                             if (!error && state->socket.is_open()) flush(state);
                           });
}

class Channel final : public PacketChannel {
 public:
  Channel(Worker& worker, Fd socket) : state_(std::make_shared<State>(worker, std::move(socket))) {}
  ~Channel() override { Channel::close(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void close() noexcept override {
    boost::system::error_code ignored;
    state_->socket.close(ignored);
  }

  Task<Result<std::optional<os::Packet>>> receive() override { return receive(state_); }

  Status send(std::string bytes, std::vector<Fd> fds) override {
    if (!state_->socket.is_open()) return fail(Reason::Internal, "the channel is closed");
    if (state_->broken) return std::unexpected(*state_->broken);
    Queued message{std::move(bytes), std::move(fds)};
    if (state_->queue.empty()) {
      auto sent = send_now(state_->socket.native_handle(), message);
      if (sent || sent.error().reason != Reason::Overloaded) return sent;
      state_->queue.push_back(std::move(message));
      flush_later(state_);
      return {};
    }
    if (state_->queue.size() >= kMaxQueued) {
      return fail(Reason::Overloaded, "too many messages wait for another process");
    }
    state_->queue.push_back(std::move(message));
    return {};
  }

 private:
  static Task<Result<std::optional<os::Packet>>> receive(std::shared_ptr<State> state) {
    while (state->socket.is_open()) {
      auto packet = os::recv_packet(state->socket.native_handle());
      if (!packet) co_return fail(std::move(packet));
      if (*packet && (*packet)->end) break;
      if (*packet) co_return std::move(*packet);
      boost::system::error_code error;
      co_await state->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                                        asio::redirect_error(asio::use_awaitable, error));
      if (error) break;
    }
    co_return std::optional<os::Packet>();
  }

  std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<PacketChannel> PacketChannel::make(Worker& worker, Fd socket) {
  return std::make_unique<Channel>(worker, std::move(socket));
}

Task<Result<std::optional<os::Packet>>> receive_within(Worker& worker, PacketChannel& channel,
                                                       Clock::duration limit) {
  Deadline deadline(worker, [&channel] { channel.close(); });
  deadline.set(limit);
  co_return co_await channel.receive();
}

}  // namespace sallyport::net
