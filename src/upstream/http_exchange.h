// One request and its answer on one HTTP/1.1 connection. We alone write the framing, and count what was
// announced: no caller can hide a second request in a body.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/secret.h"
#include "net/stream.h"
#include "policy/grant.h"
#include "upstream/answer.h"
#include "upstream/exchange.h"
#include "upstream/limits.h"

namespace sallyport::upstream {

class HttpExchange final : public Exchange {
 public:
  // Takes the connection back when both messages ended and it may serve another request.
  using GiveBack = std::function<void(std::unique_ptr<net::Stream>)>;

  HttpExchange(std::unique_ptr<net::Stream> stream, const Request& request, policy::Timeouts timeouts,
               GiveBack give_back);
  ~HttpExchange() override;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  // First, once. `head` is what request_head() made; `credential_line` may be null, and is only used during
  // the call. HeadTooLarge over its limit (limits.h).
  net::Task<Status> send_head(std::string head, const Secret* credential_line);

  net::Task<Status> send_body(std::string_view bytes) override;
  net::Task<Status> end_body() override;
  net::Task<Result<AnswerHead>> read_head() override;
  net::Task<Result<std::size_t>> read_body(std::span<char> into) override;
  Result<Switched> take_stream() override;
  void abort() noexcept override {
    if (stream_) stream_->close();
  }

  // Not a byte of the answer has come.
  bool untouched() const { return framer_.untouched(); }

 private:
  net::Task<Status> send_chunks(std::string_view bytes);
  void limit_early_head();
  // Bytes of the connection into the first part of `into`, what read_head() left over first. 0 at its end.
  net::Task<Result<std::size_t>> next_bytes(std::span<char> into);
  // Keeps the body bytes of into[0, filled), moved to the front; returns how many.
  Result<std::size_t> unframe(std::span<char> into, std::size_t filled);

  std::unique_ptr<net::Stream> stream_;  // null: handed out
  BodyKind body_;
  std::uint64_t left_to_send_;  // Declared
  policy::Timeouts timeouts_;
  GiveBack give_back_;
  AnswerFramer framer_;
  std::string left_over_;  // came with the head, not yet read
  bool body_ended_ = false;
  bool head_read_ = false;
  bool switched_ = false;
  bool early_head_ = false;  // its first byte came before the body's end
  bool surplus_ = false;     // something came behind the answer
};

enum class Carries : std::uint8_t { Nothing, Credential };

// The request's head without the empty line: the one place that says what may go upstream. Beside a
// credential only https, kForwardedHeaders and no upgrade; without one every field that is well-formed and
// neither framing nor of one connection. Internal otherwise.
Result<std::string> request_head(const Request& request, Carries carries);

}  // namespace sallyport::upstream
