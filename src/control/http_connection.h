// One connection of the control API: reads one request, gives one answer, and ends. Nothing here blocks, and
// everything that the peer chooses is bounded: how much it sends, how long it takes, how slowly it reads.
//
// One request a connection: where a second would begin is then nobody's guess, and a connection costs nothing
// on a Unix socket.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "control/http_request.h"
#include "http/limits.h"
#include "http/request_head.h"
#include "os/event_loop.h"

namespace sallyport::control {

// From the connection's begin to the request's last byte.
inline constexpr std::chrono::seconds kRequestLimit{5};
// Without the peer taking a byte of what waits for it.
inline constexpr std::chrono::seconds kWriteIdle{5};
// Passed with the request, as a command's standard input, output and error.
inline constexpr std::size_t kMaxDescriptors = 3;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{64} * 1024;
// Of the calls whose body holds a whole environment.
inline constexpr std::size_t kMaxLargeBodyBytes = std::size_t{1024} * 1024;
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{8} * 1024 * 1024;
// Lines of a stream that the peer has not taken yet.
inline constexpr std::size_t kMaxQueuedBytes = std::size_t{1024} * 1024;

struct HttpTimes {
  std::chrono::milliseconds request = kRequestLimit;
  std::chrono::milliseconds write_idle = kWriteIdle;
  std::chrono::milliseconds linger = http::kLingerTimeout;
};

// All of an answer but a stream.
std::string http_answer(int status, std::string_view content_type, std::string_view body);

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  struct Callbacks {
    // The head has come: the largest body that it may have, or why it is refused.
    std::function<ApiResult<std::size_t>(const HttpRequest&)> on_head;
    // The request is complete. Answered by send() or begin_stream(), now or later.
    std::function<void(HttpRequest, std::string body, std::vector<Fd>)> on_request;
    // It is not, and never will be: send() says why. Not called for a peer that went away.
    std::function<void(const ApiError&)> on_bad_request;
    // Last of all, once. The status of the answer, 0 when there was none.
    std::function<void(int status)> on_closed;
  };

  // Connected, non-blocking. Shared, so that it lives through the callbacks in which it ends; its owner is
  // the server, and all others hold it weakly.
  static std::shared_ptr<HttpConnection> start(os::EventLoop& loop, Fd socket, Callbacks callbacks,
                                               HttpTimes times = {});
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  // The whole answer. A body over kMaxAnswerBytes is a mistake of ours, and becomes a 500 without one.
  void send(int status, std::string_view content_type, std::string_view body);

  // An answer of JSON lines, as long as it takes. A peer that leaves more than kMaxQueuedBytes of them lying
  // is cut, as is one that reads nothing for kWriteIdle.
  // With a first line, the peer does not see one without the other. Lines are without their line feed.
  void begin_stream(std::string_view first_line = "");
  void line(std::string_view json);
  void end_stream();
  std::size_t queued_bytes() const { return out_.size() - sent_; }

  // Called by the loop, at most once, when the peer went away or was cut before its answer was given to its
  // end.
  void when_gone(std::function<void()> callback) { when_gone_ = std::move(callback); }

  // At once; a peer can tell it from an answer's end.
  void close();
  bool is_closed() const { return state_ == State::Closed; }

 private:
  enum class State : std::uint8_t {
    Head,
    Body,
    Waiting,    // for the handler; the peer may only go away
    Streaming,  // more is to come
    Answering,  // all is queued
    Lingering,  // all is sent; the rest of a request that was refused is read, lest a reset tear the answer
                // away
    Closed,
  };

  HttpConnection(os::EventLoop& loop, Fd socket, Callbacks callbacks, HttpTimes times)
      : loop_(loop), socket_(std::move(socket)), callbacks_(std::move(callbacks)), times_(times) {}

  void on_event(short revents);
  void read();
  bool take_descriptors(msghdr& message);
  void parse();
  void parse_head();
  void refuse_request(const ApiError& error);
  void complete();
  void write();
  void finish_answer();
  void discard();
  void queue(std::string_view bytes);
  void watch();
  void set_deadline(std::chrono::milliseconds after);
  void clear_deadline();
  void on_deadline();

  os::EventLoop& loop_;
  Fd socket_;
  Callbacks callbacks_;
  HttpTimes times_;
  std::function<void()> when_gone_;
  State state_ = State::Head;
  int status_ = 0;
  bool request_read_ = false;  // to its end
  http::HeadScanner scanner_;
  std::string in_;  // the head, then the body
  std::vector<Fd> fds_;
  HttpRequest request_;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
  std::uint64_t discarded_ = 0;
  std::optional<os::EventLoop::TimerId> deadline_;
};

}  // namespace sallyport::control
