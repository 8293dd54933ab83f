#include "http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/buffer.h"
#include "base/text.h"
#include "http/limits.h"
#include "http/reply.h"

namespace sallyport::http {
namespace {

// Fields are kept in lower case; on the wire they look as people and scripts expect: "Content-Type".
std::string title_case(std::string_view name) {
  std::string out(name);
  bool first = true;
  for (char& c : out) {
    if (first && is_lower(c)) c = static_cast<char>(c - 'a' + 'A');
    first = c == '-';
  }
  return out;
}

bool is_clean(std::string_view text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

// Assigning an empty string would keep the memory.
void free_buffer(std::string& buffer) {
  std::string().swap(buffer);
}

// RFC 9110, 12.5.1, as far as it matters here: a range of that name, whatever its weight but 0.
bool accepts_json(const RequestHead& head) {
  for (const Field& field : head.fields) {
    if (field.name != "accept") continue;
    for (const std::string_view range : split(field.value, ',')) {
      const std::vector<std::string_view> words = split(range, ';');
      const bool unwanted = words.size() > 1 && trimmed(words[1]) == "q=0";
      if (equals_ignoring_case(trimmed(words[0]), "application/json") && !unwanted) return true;
    }
  }
  return false;
}

Status append_fields(std::string& head, const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (!is_token(field.name) || !is_clean(field.value)) return fail(Reason::Internal, "unclean field");
    head += fmt::format("{}: {}\r\n", title_case(field.name), field.value);
  }
  return {};
}

}  // namespace

Connection::Connection(net::Stream& stream, std::uint16_t default_port, net::Clock::duration head_limit,
                       Entry entry)
    : stream_(stream),
      default_port_(default_port),
      head_limit_(head_limit),
      entry_(entry),
      chunks_(wire::ChunkedDecoder::Message::Request) {}

// ---- input ----

std::string_view Connection::pending() const {
  return std::string_view(input_).substr(input_at_);
}

void Connection::consume(std::size_t bytes) {
  input_at_ += bytes;
  if (input_at_ < input_.size()) return;
  input_.clear();
  input_at_ = 0;
}

// Reads up to `bytes` more behind what is pending. 0 at the client's end.
net::Task<Result<std::size_t>> Connection::fill(std::size_t bytes) {
  input_.erase(0, std::exchange(input_at_, 0));
  const std::size_t before = input_.size();
  // Not filled with zeros that would be read over.
  input_.resize_and_overwrite(before + bytes, [](char*, std::size_t size) { return size; });
  auto got = co_await stream_.read_some(std::span(input_).subspan(before));
  input_.resize(before + got.value_or(0));
  co_return got;
}

net::Task<Result<std::optional<RequestHead>>> Connection::next_request() {
  response_ = ResponseState::None;
  client_wants_json_ = false;
  retry_after_ = kRetryAfter;
  free_buffer(output_);
  const net::Clock::duration idle = std::exchange(first_request_, false) ? head_limit_ : kKeepAliveIdle;
  if (pending().empty()) {
    free_buffer(input_);
    stream_.limit_total(idle);
    if (!co_await stream_.wait_readable()) co_return std::nullopt;
  }
  stream_.limit_total(head_limit_);

  auto head = co_await read_head();
  if (!head || !*head) {
    persistence_ = Persistence::Close;
    body_state_ = BodyState::Broken;
    co_return head;
  }
  start_request(**head);
  co_return head;
}

net::Task<Result<std::optional<RequestHead>>> Connection::read_head() {
  HeadScanner scanner(entry_);
  for (;;) {
    const auto size = scanner.scan(pending());
    if (!size) co_return fail(Result(size));
    if (*size) {
      const std::string_view bytes = pending().substr(0, **size);
      auto head =
          entry_ == Entry::Proxy ? parse_proxy_request(bytes) : parse_request_head(bytes, default_port_);
      consume(**size);
      if (!head) co_return fail(std::move(head));
      co_return std::move(*head);
    }
    const auto got = co_await fill(kHeadReadBytes);
    if (got && *got > 0) continue;
    // Between requests a client may leave as it likes: many do without TLS's last word.
    if (pending().empty()) co_return std::nullopt;
    if (!got) co_return fail(Result(got));
    co_return fail(Reason::ClientClosed, "in the middle of a request's head");
  }
}

void Connection::start_request(const RequestHead& head) {
  persistence_ = head.persistence;
  is_head_request_ = head.method == "HEAD";
  client_wants_json_ = accepts_json(head);
  body_kind_ = head.body;
  body_left_ = head.body_bytes;
  chunks_ = wire::ChunkedDecoder(wire::ChunkedDecoder::Message::Request);
  const bool empty = head.body == BodyKind::None || (head.body == BodyKind::Declared && head.body_bytes == 0);
  body_state_ = empty ? BodyState::Finished : BodyState::Reading;
  continue_owed_ = head.expects_continue && !empty;
  stream_.limit_idle(kBodyIdle);
}

// ---- the request's body ----

net::Task<Status> Connection::send_continue() {
  if (!std::exchange(continue_owed_, false) || response_ != ResponseState::None) co_return Status{};
  co_return co_await stream_.write_all("HTTP/1.1 100 Continue\r\n\r\n");
}

net::Task<Result<std::size_t>> Connection::read_body(std::span<char> into) {
  if (body_state_ == BodyState::Finished) co_return std::size_t{0};
  if (body_state_ == BodyState::Broken) co_return fail(Reason::ClientClosed, "body was broken off before");
  auto got = body_kind_ == BodyKind::Chunked ? co_await read_chunked(into) : co_await read_declared(into);
  if (!got) body_state_ = BodyState::Broken;
  co_return got;
}

net::Task<Result<std::size_t>> Connection::read_declared(std::span<char> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_)));
  std::size_t size = std::min(into.size(), pending().size());
  if (size > 0) {
    std::ranges::copy(pending().substr(0, size), into.begin());
    consume(size);
  } else {
    const auto got = co_await stream_.read_some(into);
    if (!got) co_return got;
    if (*got == 0) co_return fail(Reason::ClientClosed, "in the middle of a body");
    size = *got;
  }
  body_left_ -= size;
  if (body_left_ == 0) body_state_ = BodyState::Finished;
  co_return size;
}

net::Task<Result<std::size_t>> Connection::read_chunked(std::span<char> into) {
  std::size_t size = 0;
  for (;;) {
    const auto step = chunks_.decode(pending().substr(0, into.size() - size));
    if (!step) co_return fail(Result(step));
    std::ranges::copy(step->data, into.begin() + static_cast<std::ptrdiff_t>(size));
    size += step->data.size();
    consume(step->consumed);
    if (step->finished) body_state_ = BodyState::Finished;
    if (step->finished || size == into.size()) co_return size;
    // All that is here goes on in one piece: every hop behind us then costs one call instead of one a chunk.
    if (!pending().empty()) continue;
    if (size > 0) co_return size;
    const auto got = co_await fill(kReadBytes);
    if (!got) co_return got;
    if (*got == 0) co_return fail(Reason::ClientClosed, "in the middle of a body");
  }
}

net::Task<Status> Connection::drain_body(std::uint64_t max_bytes) {
  if (body_finished()) co_return Status{};
  Buffer scratch(kReadBytes);
  std::uint64_t drained = 0;
  while (!body_finished()) {
    const auto got = co_await read_body(scratch.all());
    if (!got) co_return fail(Result(got));
    drained += *got;
    if (drained > max_bytes) co_return fail(Reason::TooLarge, "more body than is drained");
  }
  co_return Status{};
}

net::Task<Status> Connection::wait_for_close() {
  if (!pending().empty()) co_return Status{};
  if (auto ready = co_await stream_.wait_readable(); !ready) co_return ready;
  const auto got = co_await fill(kHeadReadBytes);
  if (!got) co_return fail(Result(got));
  if (*got == 0) co_return fail(Reason::ClientClosed, "while its answer was on the way");
  co_return Status{};
}

void Connection::limit_body_idle(net::Clock::duration limit) {
  stream_.limit_idle(limit);
}

// ---- the answer ----

net::Task<Status> Connection::begin_response(int status, std::vector<Field> fields,
                                             std::optional<std::uint64_t> length) {
  if (response_ != ResponseState::None) co_return fail(Reason::Internal, "a second answer to one request");
  continue_owed_ = false;
  const bool bodiless = status == 204 || status == 304;
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", status, reason_phrase(status));
  if (auto clean = append_fields(head, fields); !clean) co_return clean;
  if (!bodiless) {
    head += length ? fmt::format("Content-Length: {}\r\n", *length) : "Transfer-Encoding: chunked\r\n";
  }
  if (persistence_ == Persistence::Close) head += "Connection: close\r\n";
  head += "\r\n";

  if (bodiless || is_head_request_) {
    response_ = ResponseState::NoBody;
  } else {
    response_ = length ? ResponseState::Length : ResponseState::Chunked;
    response_left_ = length.value_or(0);
  }
  co_return co_await stream_.write_all(head);
}

net::Task<Result<std::string>> Connection::switch_protocols(std::string protocol, std::vector<Field> fields) {
  if (response_ != ResponseState::None || !body_finished()) {
    co_return fail(Reason::Internal, "a switch inside a request or its answer");
  }
  std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n";
  if (auto clean = append_fields(head, fields); !clean) co_return fail(std::move(clean));
  head += "\r\n";
  persistence_ = Persistence::Close;
  response_ = ResponseState::Ended;
  if (auto written = co_await stream_.write_all(head); !written) co_return fail(std::move(written));
  std::string early(pending());
  free_buffer(input_);
  input_at_ = 0;
  co_return early;
}

net::Task<Status> Connection::write_body(std::string_view bytes) {
  // An empty chunk would be the last one.
  if (bytes.empty() || response_ == ResponseState::NoBody) co_return Status{};
  if (response_ == ResponseState::Chunked) {
    output_.clear();
    fmt::format_to(std::back_inserter(output_), "{:x}\r\n{}\r\n", bytes.size(), bytes);
    co_return co_await stream_.write_all(output_);
  }
  if (response_ != ResponseState::Length || bytes.size() > response_left_) {
    abort();
    co_return fail(Reason::Internal, "more answer than was announced");
  }
  response_left_ -= bytes.size();
  co_return co_await stream_.write_all(bytes);
}

net::Task<Status> Connection::end_response() {
  const ResponseState was = std::exchange(response_, ResponseState::Ended);
  if (was == ResponseState::None || was == ResponseState::Ended ||
      (was == ResponseState::Length && response_left_ > 0)) {
    abort();
    co_return fail(Reason::Internal, "an answer that is not complete was ended");
  }
  if (was == ResponseState::Chunked) co_return co_await stream_.write_all("0\r\n\r\n");
  co_return Status{};
}

// RFC 9110, 9.3.6: a 2xx to CONNECT has no framing field; whatever follows its blank line is the tunnel's.
net::Task<Result<std::string>> Connection::open_tunnel() {
  if (response_ != ResponseState::None) co_return fail(Reason::Internal, "a tunnel behind an answer");
  response_ = ResponseState::Ended;
  persistence_ = Persistence::Close;
  if (auto written = co_await stream_.write_all("HTTP/1.1 200 Connection established\r\n\r\n"); !written) {
    co_return fail(std::move(written));
  }
  std::string early(pending());
  free_buffer(input_);
  input_at_ = 0;
  co_return early;
}

void Connection::say_retry_after(std::chrono::duration<double> wait) {
  // Before it is rounded: a double may hold more than an integer can.
  const std::chrono::duration<double> least = kRetryAfter;
  const std::chrono::duration<double> most = kMaxRetryAfter;
  retry_after_ = std::chrono::ceil<std::chrono::seconds>(std::clamp(wait, least, most));
}

bool Connection::answer_written() const {
  return response_ == ResponseState::NoBody || response_ == ResponseState::Ended ||
         (response_ == ResponseState::Length && response_left_ == 0);
}

bool Connection::reusable() const {
  return response_ == ResponseState::Ended && body_finished() && persistence_ == Persistence::KeepAlive;
}

net::Task<> Connection::finish() {
  stream_.limit_total(kLingerTimeout);
  if (co_await stream_.shutdown_write()) {
    Buffer scratch(kHeadReadBytes);
    for (std::uint64_t read = 0; read < kLingerBytes;) {
      const auto got = co_await stream_.read_some(scratch.all());
      if (!got || *got == 0) break;
      read += *got;
    }
  }
  stream_.close();
}

void Connection::abort() noexcept {
  persistence_ = Persistence::Close;
  stream_.close();
}

}  // namespace sallyport::http
