#include "engine/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sallyport::engine {

Client::Client(os::EventLoop& loop, std::string socket_path)
    : loop_(loop), socket_path_(std::move(socket_path)) {}

Call Client::start(Request request, BodyKind kind, Exchange::OnEnd on_end, Exchange::OnPiece on_piece) {
  const bool endless = kind == BodyKind::Stream || !request.timeout;
  auto exchange = std::make_unique<Exchange>(loop_, socket_path_, api_, std::move(request), kind,
                                             std::move(on_end), std::move(on_piece));
  if (!endless) {
    enqueue(*exchange);
  } else if (streams_ < kMaxStreams) {
    ++streams_;
    exchange->on_release([this](Exchange*) { --streams_; });
    exchange->connect();
  } else {
    exchange->fail_later(
        {Reason::Overloaded, fmt::format("more than {} streams of the container engine", kMaxStreams)});
  }
  return exchange;
}

void Client::enqueue(Exchange& exchange) {
  if (running_ < kMaxRequests) {
    ++running_;
    exchange.on_release([this](Exchange*) { release_turn(); });
    return exchange.connect();
  }
  if (waiting_.size() >= kMaxQueuedRequests) {
    return exchange.fail_later(
        {Reason::Overloaded,
         fmt::format("more than {} requests wait for the container engine", kMaxQueuedRequests)});
  }
  waiting_.push_back(&exchange);
  exchange.on_release([this](Exchange* gone) { std::erase(waiting_, gone); });
}

void Client::release_turn() {
  --running_;
  if (waiting_.empty()) return;
  Exchange* next = waiting_.front();
  waiting_.pop_front();
  enqueue(*next);
}

Call Client::request(Request request, On<Answer> on_answer) {
  return start(
      std::move(request), BodyKind::Whole,
      [on_answer = std::move(on_answer)](Exchange::Ending ending) { on_answer(std::move(ending.answer)); },
      {});
}

Call Client::stream(Request request, Listener listener) {
  const std::string what = request.target.substr(0, request.target.find('?'));
  auto on_end = [what, on_end = std::move(listener.on_end)](Exchange::Ending ending) {
    if (!ending.answer) return on_end(std::move(ending.answer).error());
    constexpr int kOk = 200;
    if (ending.answer->status != kOk) return on_end(refusal(*ending.answer, what));
    on_end({Reason::EngineUnavailable, fmt::format("the container engine ended {}", what)});
  };
  auto on_piece = [on_open = std::move(listener.on_open),
                   on_bytes = std::move(listener.on_bytes)](std::string bytes) {
    if (bytes.empty()) return on_open();
    on_bytes(std::move(bytes));
  };
  return start(std::move(request), BodyKind::Stream, std::move(on_end), std::move(on_piece));
}

Call Client::raw(Request request, On<RawStream> on_stream) {
  const std::string what = request.target.substr(0, request.target.find('?'));
  return start(std::move(request), BodyKind::Raw,
               [what, on_stream = std::move(on_stream)](Exchange::Ending ending) {
                 if (!ending.answer) return on_stream(std::unexpected(std::move(ending.answer).error()));
                 if (!ending.connection) return on_stream(std::unexpected(refusal(*ending.answer, what)));
                 on_stream(RawStream{std::move(ending.connection), std::move(ending.answer->body)});
               },
               {});
}

// Two questions, one behind the other.
class Negotiation : public Pending {
 public:
  Negotiation(Client& client, On<EngineInfo> on_info) : client_(client), on_info_(std::move(on_info)) {
    client_.api_.clear();
    ask("/version", [this](const Answer& answer) { on_version(answer); });
  }

 private:
  void ask(std::string target, std::function<void(const Answer&)> then) {
    Request request;
    request.target = target;
    call_ = client_.request(std::move(request), [this, target = std::move(target),
                                                 then = std::move(then)](Result<Answer> answer) {
      constexpr int kOk = 200;
      if (!answer) return end(std::unexpected(std::move(answer).error()));
      if (answer->status != kOk) return end(std::unexpected(refusal(*answer, "GET " + target)));
      then(*answer);
    });
  }
  void on_version(const Answer& answer) {
    auto info = read_version(answer.body);
    if (!info) return end(fail(std::move(info)));
    info_ = std::move(*info);
    client_.api_ = "/v" + info_.api.text();
    ask("/info", [this](const Answer& more) { on_info(more); });
  }
  void on_info(const Answer& answer) {
    if (auto status = read_info(answer.body, info_); !status) return end(std::unexpected(status.error()));
    end(std::move(info_));
  }
  void end(Result<EngineInfo> info) {
    const auto callback = std::move(on_info_);
    callback(std::move(info));  // may destroy this
  }

  Client& client_;
  On<EngineInfo> on_info_;
  EngineInfo info_;
  Call call_;
};

Call Client::negotiate(On<EngineInfo> on_info) {
  return std::make_unique<Negotiation>(*this, std::move(on_info));
}

}  // namespace sallyport::engine
