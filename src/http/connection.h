// The server side of one client connection: requests in, answers out, one after the other.
//
//   while (auto head = co_await connection.next_request()) { ... read_body ... begin_response ... }
//   co_await connection.finish();
//
// One coroutine may read the body while another writes the answer. Bytes of a pipelined request are kept and
// judged anew by the next next_request(). While no request is in work the connection holds no buffer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/limits.h"
#include "http/request_head.h"
#include "net/stream.h"
#include "net/task.h"
#include "policy/grant.h"
#include "wire/chunked.h"

namespace sallyport::http {

class Connection {
 public:
  // `stream` is borrowed and outlives this. `default_port`: see parse_request_head(); a proxy has no use for
  // it. `head_limit`: from a head's first byte to its blank line, and until the first request's first byte.
  Connection(net::Stream& stream, std::uint16_t default_port,
             net::Clock::duration head_limit = policy::Timeouts{}.request_head, Entry entry = Entry::Origin);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Before the first request: what was read from the stream already.
  void begin_with(std::string bytes) { input_ = std::move(bytes); }

  // The next request, or nullopt when the client ended the connection or kept still between requests. An
  // error is the client's (BadRequest, ClientTimeout, ...): it is to be answered with refuse() of reply.h, if
  // it can still be told anything, and then the connection is finished.
  net::Task<Result<std::optional<RequestHead>>> next_request();

  // ---- the request's body ----

  // "100 Continue", once, if the request asked for it and no answer has begun; else nothing.
  net::Task<Status> send_continue();
  // Decoded body bytes, at least one; 0 at the body's end. BadRequest when its chunks are malformed,
  // ClientClosed when the client left in the middle of it.
  net::Task<Result<std::size_t>> read_body(std::span<char> into);
  bool body_finished() const { return body_state_ == BodyState::Finished; }
  // Reads and forgets the rest of the body; TooLarge when more than `max_bytes` came.
  net::Task<Status> drain_body(std::uint64_t max_bytes);
  // Returns when bytes of the next request are there; ClientClosed when the client has gone. Only after the
  // body's end.
  net::Task<Status> wait_for_close();
  // Whoever waits for the client gets an error.
  void stop_waiting() noexcept { stream_.stop_waiting(); }

  // ---- the answer ----

  // Writes the head. `length` nullopt: chunked, written here. `fields` hold no framing field (Content-Length,
  // Transfer-Encoding, Connection). A HEAD request's answer and a 204 or 304 carry no body, whatever is
  // written.
  net::Task<Status> begin_response(int status, std::vector<Field> fields,
                                   std::optional<std::uint64_t> length);
  net::Task<Status> write_body(std::string_view bytes);
  // The answer is complete; with a length, exactly that many bytes were written.
  net::Task<Status> end_response();
  // Instead of an answer, to a CONNECT: from here on the stream carries the tunnel's bytes. Those that the
  // client sent too early are the result.
  net::Task<Result<std::string>> open_tunnel();
  // Its last bytes were written or are being: the client may leave.
  bool answer_written() const;
  bool response_begun() const { return response_ != ResponseState::None; }

  // Instead of an answer, to a request without body: the 101, and with it the end of HTTP on the connection.
  // `fields` as above, without Upgrade. Gives what the client sent behind its request; its stream is the
  // caller's from now on.
  net::Task<Result<std::string>> switch_protocols(std::string protocol, std::vector<Field> fields);

  // The answer will be the connection's last: "Connection: close" when said before begin_response().
  void close_after_response() { persistence_ = Persistence::Close; }
  // After the answer: whether another request may follow. Never when the body was not read to its end: its
  // rest could be taken for a request.
  bool reusable() const;

  // Ends the connection so that the last answer still arrives: our direction first, then what the client was
  // sending is read for a moment.
  net::Task<> finish();
  // At once: the client sees that the answer was cut.
  void abort() noexcept;

  // How long until the request in work is worth another try, for a 429 or 503 to it. Whole seconds from
  // kRetryAfter, which it is unless said otherwise, to kMaxRetryAfter.
  void say_retry_after(std::chrono::duration<double> wait);
  std::chrono::seconds retry_after() const { return retry_after_; }

  // The request in work names application/json among what it accepts: its refusals shall be for a program.
  bool client_wants_json() const { return client_wants_json_; }

  net::Stream& stream() { return stream_; }
  // How long, inside a request, no byte needs to move (kBodyIdle unless said otherwise).
  void limit_body_idle(net::Clock::duration limit);

 private:
  enum class BodyState : std::uint8_t { Finished, Reading, Broken };
  enum class ResponseState : std::uint8_t { None, Length, Chunked, NoBody, Ended };

  std::string_view pending() const;
  void consume(std::size_t bytes);
  net::Task<Result<std::size_t>> fill(std::size_t bytes);
  net::Task<Result<std::optional<RequestHead>>> read_head();
  net::Task<Result<std::size_t>> read_declared(std::span<char> into);
  net::Task<Result<std::size_t>> read_chunked(std::span<char> into);
  void start_request(const RequestHead& head);

  net::Stream& stream_;
  std::uint16_t default_port_;
  net::Clock::duration head_limit_;
  Entry entry_;
  std::string input_;  // received; consumed up to input_at_
  std::size_t input_at_ = 0;
  std::string output_;  // one chunk on its way out
  bool first_request_ = true;

  BodyState body_state_ = BodyState::Finished;
  BodyKind body_kind_ = BodyKind::None;
  std::uint64_t body_left_ = 0;  // Declared
  wire::ChunkedDecoder chunks_;
  bool continue_owed_ = false;

  ResponseState response_ = ResponseState::None;
  std::uint64_t response_left_ = 0;  // Length
  bool is_head_request_ = false;
  bool client_wants_json_ = false;
  std::chrono::seconds retry_after_ = kRetryAfter;
  Persistence persistence_ = Persistence::KeepAlive;
};

}  // namespace sallyport::http
