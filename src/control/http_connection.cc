#include "control/http_connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "base/buffer.h"
#include "http/limits.h"
#include "os/unix_socket.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{16} * 1024;

// RFC 9112, 7.1
std::string chunk_of(std::string_view json) {
  return fmt::format("{:x}\r\n{}\n\r\n", json.size() + 1, json);
}

}  // namespace

std::string http_answer(int status, std::string_view content_type, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {} \r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "Connection: close\r\n\r\n{}",
      status, content_type, body.size(), body);
}

std::shared_ptr<HttpConnection> HttpConnection::start(os::EventLoop& loop, Fd socket, Callbacks callbacks,
                                                      HttpTimes times) {
  std::shared_ptr<HttpConnection> connection(
      new HttpConnection(loop, std::move(socket), std::move(callbacks), times));
  connection->set_deadline(times.request);
  connection->watch();
  return connection;
}

HttpConnection::~HttpConnection() {
  clear_deadline();
  if (socket_) loop_.unwatch(socket_.get());
}

void HttpConnection::watch() {
  short events = 0;  // POLLHUP and POLLERR always come
  if (state_ == State::Head || state_ == State::Body || state_ == State::Lingering) events = POLLIN;
  if (sent_ < out_.size()) events = POLLOUT;
  loop_.watch(socket_.get(), events, [weak = weak_from_this()](short revents) {
    if (const auto self = weak.lock()) self->on_event(revents);
  });
}

void HttpConnection::set_deadline(std::chrono::milliseconds after) {
  clear_deadline();
  deadline_ = loop_.after(after, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_deadline();
  });
}

void HttpConnection::clear_deadline() {
  if (deadline_) loop_.cancel(*deadline_);
  deadline_.reset();
}

void HttpConnection::on_deadline() {
  deadline_.reset();
  const bool reading = state_ == State::Head || state_ == State::Body;
  if (!reading) return close();
  refuse_request({408, "client_timeout", "The request did not arrive in time."});
}

void HttpConnection::on_event(short revents) {
  switch (state_) {
    case State::Head:
    case State::Body:
      return read();
    case State::Waiting:
      return close();  // nothing else is watched for
    case State::Streaming:
    case State::Answering:
      if ((revents & (POLLHUP | POLLERR)) != 0) return close();
      return write();
    case State::Lingering:
      return discard();
    case State::Closed:
      return;
  }
}

// Takes every received descriptor into ownership, first of all; false when there are more than may come.
bool HttpConnection::take_descriptors(msghdr& message) {
  std::ranges::move(os::take_descriptors(message), std::back_inserter(fds_));
  // Those that found no room in the message are closed by the kernel.
  return (message.msg_flags & MSG_CTRUNC) == 0 && fds_.size() <= kMaxDescriptors;
}

void HttpConnection::read() {
  Buffer piece(kPieceBytes);
  iovec part{piece.all().data(), piece.all().size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (got < 0 && (os::would_block(errno) || errno == EINTR)) return;
  if (got < 0) return close();
  if (!take_descriptors(message)) {
    fds_.clear();
    return refuse_request({400, "bad_request",
                           fmt::format("At most {} descriptors may come with a request.", kMaxDescriptors)});
  }
  if (got == 0) return close();  // half a request: nobody waits for an answer
  in_ += piece.first(static_cast<std::size_t>(got));
  parse();
}

void HttpConnection::parse() {
  if (state_ == State::Head) parse_head();
  if (state_ != State::Body || in_.size() < request_.body_bytes) return;
  if (in_.size() > request_.body_bytes) {
    return refuse_request({400, "bad_request", "Something follows the request: a connection serves one."});
  }
  complete();
}

void HttpConnection::parse_head() {
  const auto size = scanner_.scan(in_);
  if (!size) return refuse_request(to_api_error(size.error()));
  if (!*size) return;
  auto request = parse_http_request(std::string_view(in_).substr(0, **size));
  if (!request) return refuse_request(request.error());
  request_ = std::move(*request);
  const auto most = callbacks_.on_head(request_);
  if (!most) return refuse_request(most.error());
  if (request_.body_bytes > *most) {
    return refuse_request({413, "too_large", fmt::format("The body has more than {} bytes.", *most)});
  }
  in_.erase(0, **size);
  state_ = State::Body;
}

void HttpConnection::refuse_request(const ApiError& error) {
  state_ = State::Waiting;
  clear_deadline();
  callbacks_.on_bad_request(error);
}

void HttpConnection::complete() {
  request_read_ = true;
  state_ = State::Waiting;
  clear_deadline();
  watch();
  callbacks_.on_request(std::move(request_), std::move(in_), std::move(fds_));
}

void HttpConnection::send(int status, std::string_view content_type, std::string_view body) {
  if (state_ != State::Waiting) return;
  if (body.size() > kMaxAnswerBytes) {
    status = 500;
    body = "";
  }
  state_ = State::Answering;
  status_ = status;
  queue(http_answer(status, content_type, body));
}

void HttpConnection::begin_stream(std::string_view first_line) {
  if (state_ != State::Waiting) return;
  state_ = State::Streaming;
  status_ = 200;
  queue(
      "HTTP/1.1 200 \r\nContent-Type: application/jsonl\r\nTransfer-Encoding: chunked\r\n"
      "Cache-Control: no-store\r\nConnection: close\r\n\r\n" +
      (first_line.empty() ? "" : chunk_of(first_line)));
}

void HttpConnection::line(std::string_view json) {
  if (state_ != State::Streaming) return;
  queue(chunk_of(json));
}

void HttpConnection::end_stream() {
  if (state_ != State::Streaming) return;
  state_ = State::Answering;
  queue("0\r\n\r\n");
}

void HttpConnection::queue(std::string_view bytes) {
  const bool was_empty = sent_ == out_.size();
  if (was_empty) {
    out_.clear();
    sent_ = 0;
  }
  out_ += bytes;
  // Only a stream can come here with more than one answer.
  if (state_ == State::Streaming && out_.size() - sent_ > kMaxQueuedBytes) return close();
  if (was_empty) {
    set_deadline(times_.write_idle);
    write();
  }
}

void HttpConnection::write() {
  bool progress = false;
  while (sent_ < out_.size()) {
    const ssize_t count = ::send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && os::would_block(errno)) break;
    if (count < 0) return close();
    sent_ += static_cast<std::size_t>(count);
    progress = true;
  }
  if (sent_ < out_.size()) {
    if (progress) set_deadline(times_.write_idle);
    // A stream has no end to wait for: what is sent is given back.
    if (state_ == State::Streaming) out_.erase(0, std::exchange(sent_, 0));
    return watch();
  }
  out_.clear();
  sent_ = 0;
  clear_deadline();
  if (state_ == State::Answering) return finish_answer();
  watch();
}

void HttpConnection::finish_answer() {
  if (request_read_) return close();
  ::shutdown(socket_.get(), SHUT_WR);
  state_ = State::Lingering;
  set_deadline(times_.linger);
  watch();
}

void HttpConnection::discard() {
  Buffer piece(kPieceBytes);
  // Without room for descriptors: the kernel closes them.
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): a weak_ptr's lock() is none
  const ssize_t got = ::recv(socket_.get(), piece.all().data(), piece.all().size(), 0);
  if (got < 0 && (os::would_block(errno) || errno == EINTR)) return;
  if (got > 0) discarded_ += static_cast<std::uint64_t>(got);
  if (got <= 0 || discarded_ > http::kLingerBytes) close();
}

void HttpConnection::close() {
  if (state_ == State::Closed) return;
  const bool was_owed = state_ == State::Waiting || state_ == State::Streaming;
  state_ = State::Closed;
  clear_deadline();
  loop_.unwatch(socket_.get());
  socket_.reset();
  fds_.clear();
  // Not from here: whoever is told may take away what the one who has just written stands on.
  auto when_gone = std::exchange(when_gone_, nullptr);
  if (was_owed && when_gone) loop_.after(std::chrono::milliseconds(0), std::move(when_gone));
  callbacks_.on_closed(status_);
}

}  // namespace sallyport::control
