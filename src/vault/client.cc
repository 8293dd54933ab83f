#include "vault/client.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "net/packet_channel.h"
#include "os/unix_socket.h"
#include "vault/frames.h"
#include "vault/lane.h"

namespace sallyport::vault {
namespace {

// What the exchanges share with the client. Owners: the client and its exchanges.
struct Core {
  std::unique_ptr<net::PacketChannel> channel;
  std::vector<std::unique_ptr<Frames>> idle;
  std::size_t lanes = 0;           // idle ones included
  std::uint64_t vault_number = 0;  // counts channels, so that no lane of an old vault becomes idle
};

// One lane, counted while it lives.
class Lane {
 public:
  Lane(std::shared_ptr<Core> core, std::unique_ptr<Frames> frames)
      : core_(std::move(core)), frames_(std::move(frames)), vault_number_(core_->vault_number) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() {
    if (frames_ != nullptr) --core_->lanes;
  }

  Frames& frames() { return *frames_; }
  // It may carry another request: not used any more after this.
  void give_back() {
    if (vault_number_ != core_->vault_number || core_->idle.size() >= kMaxIdleLanes) return;
    frames_->stream().no_limit();
    core_->idle.push_back(std::move(frames_));
  }

 private:
  std::shared_ptr<Core> core_;
  std::unique_ptr<Frames> frames_;  // null after give_back()
  std::uint64_t vault_number_;
};

std::unexpected<Error> unavailable(std::string detail) {
  return fail(Reason::VaultUnavailable, std::move(detail));
}

class LaneExchange final : public upstream::Exchange {
 public:
  explicit LaneExchange(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}
  ~LaneExchange() override {
    if (body_ended_ && order_.ended() && !aborted_) lane_->give_back();
  }
  LaneExchange(const LaneExchange&) = delete;
  LaneExchange& operator=(const LaneExchange&) = delete;

  net::Task<Status> send_body(std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, kMaxPayloadBytes);
      if (auto sent = co_await frames().write(FrameType::Body, piece); !sent) co_return sent;
      bytes.remove_prefix(piece.size());
    }
    co_return Status();
  }

  net::Task<Status> end_body() override {
    auto sent = co_await frames().write(FrameType::BodyEnd, {});
    body_ended_ = sent.has_value();
    co_return sent;
  }

  net::Task<Result<upstream::AnswerHead>> read_head() override {
    auto header = co_await next_frame();
    if (!header) co_return fail(std::move(header));
    auto payload = co_await frames().read_payload(header->bytes);
    if (!payload) co_return fail(std::move(payload));
    auto head = decode_answer_head(*payload);
    if (head) order_.begin(head->body_bytes);
    co_return head;
  }

  net::Task<Result<std::size_t>> read_body(std::span<char> into) override {
    if (order_.ended()) co_return std::size_t{0};
    if (in_frame_ == 0) {
      auto header = co_await next_frame();
      if (!header) co_return fail(std::move(header));
      if (order_.ended()) co_return std::size_t{0};
      in_frame_ = header->bytes;
    }
    auto got = co_await frames().stream().read_some(into.first(std::min(into.size(), in_frame_)));
    if (got && *got == 0) co_return unavailable("lane: ended inside a frame");
    if (got) in_frame_ -= *got;
    co_return got;
  }

  void abort() noexcept override {
    aborted_ = true;
    frames().stream().close();
  }

 private:
  Frames& frames() { return lane_->frames(); }

  // The next frame of the answer; the error, when the vault sent one.
  net::Task<Result<FrameHeader>> next_frame() {
    auto header = co_await frames().read_header();
    // Also what the vault itself gets wrong makes it unavailable.
    if (!header) co_return unavailable(std::move(header.error().detail));
    if (!*header) co_return unavailable("lane: the vault hung up");
    if (auto accepted = order_.accept(**header); !accepted) co_return fail(std::move(accepted));
    if ((*header)->type != FrameType::Error) co_return **header;
    auto payload = co_await frames().read_payload((*header)->bytes);
    if (!payload) co_return fail(std::move(payload));
    auto error = decode_error(*payload);
    if (!error) co_return fail(std::move(error));
    co_return std::unexpected(std::move(*error));
  }

  std::unique_ptr<Lane> lane_;
  AnswerOrder order_;
  std::size_t in_frame_ = 0;  // bytes of the present AnswerBody that were not read yet
  bool body_ended_ = false;
  bool aborted_ = false;
};

class VaultClient final : public Client {
 public:
  VaultClient(net::Worker& worker, std::string session, const policy::Timeouts& timeouts)
      : worker_(worker),
        session_(std::move(session)),
        silence_(lane_silence(timeouts) + kVaultGrace),
        core_(std::make_shared<Core>()) {}

  void use_channel(Fd channel) override {
    core_->lanes -= core_->idle.size();
    core_->idle.clear();
    ++core_->vault_number;
    core_->channel = net::PacketChannel::make(worker_, std::move(channel));
  }

  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request request) override {
    const auto head = encode(make_request_head(request, session_));
    if (!head) co_return std::unexpected(head.error());
    if (core_->channel == nullptr) co_return unavailable("there is no vault");

    // A lane whose vault has gone says so at the first write: then the next one is tried.
    while (!core_->idle.empty()) {
      auto lane = std::make_unique<Lane>(core_, std::move(core_->idle.back()));
      core_->idle.pop_back();
      if (!lane->frames().stream().quiet()) continue;
      if (co_await send_head(lane->frames(), *head)) co_return exchange_on(std::move(lane));
    }
    auto lane = new_lane();
    if (!lane) co_return fail(std::move(lane));
    if (auto sent = co_await send_head((*lane)->frames(), *head); !sent) co_return fail(std::move(sent));
    co_return exchange_on(std::move(*lane));
  }

 private:
  net::Task<Status> send_head(Frames& frames, const std::string& head) const {
    frames.stream().limit_idle(silence_);
    co_return co_await frames.write(FrameType::RequestHead, head);
  }
  static std::unique_ptr<upstream::Exchange> exchange_on(std::unique_ptr<Lane> lane) {
    return std::make_unique<LaneExchange>(std::move(lane));
  }

  Result<std::unique_ptr<Lane>> new_lane() {
    if (core_->lanes >= kMaxLanes) {
      return fail(Reason::Overloaded, "too many requests need the vault at once");
    }
    auto pair = os::socket_pair(os::SocketKind::Stream);
    if (!pair) return unavailable(std::move(pair.error().detail));
    std::vector<Fd> fds;
    fds.push_back(std::move(pair->second));
    if (auto sent = core_->channel->send(std::string(kLaneHello), std::move(fds)); !sent) {
      return unavailable(std::move(sent.error().detail));
    }
    ++core_->lanes;
    return std::make_unique<Lane>(core_, std::make_unique<Frames>(net::make_socket_stream(
                                             worker_, std::move(pair->first), net::Peer::Vault)));
  }

  net::Worker& worker_;
  std::string session_;
  net::Clock::duration silence_;
  std::shared_ptr<Core> core_;
};

}  // namespace

std::unique_ptr<Client> Client::make(net::Worker& worker, std::string session,
                                     const policy::Timeouts& timeouts) {
  return std::make_unique<VaultClient>(worker, std::move(session), timeouts);
}

}  // namespace sallyport::vault
