#include "control/api_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>

#include "base/buffer.h"
#include "base/text.h"
#include "control/http_connection.h"
#include "control/json_reader.h"
#include "http/limits.h"
#include "os/control_socket.h"

namespace sallyport::control {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using Deadline = std::optional<Clock::time_point>;

constexpr std::size_t kPieceBytes = std::size_t{16} * 1024;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::unexpected<Error> malformed(std::string_view what) {
  return fail(Reason::UpstreamMalformed, fmt::format("the daemon's answer cannot be read: {}", what));
}

// False when the deadline passed first.
Result<bool> wait_until(int socket, Deadline deadline) {
  int left = -1;
  if (deadline) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    left = static_cast<int>(std::max<std::int64_t>(0, rest.count()));
  }
  pollfd entry{socket, POLLIN, 0};
  const int ready = ::poll(&entry, 1, left);
  if (ready < 0 && errno == EINTR) return fail(Reason::Interrupted, "interrupted");
  if (ready < 0) return fail_errno(Reason::Internal, "poll");
  return ready > 0;
}

// Zero at the end.
Result<std::size_t> read_more(int socket, std::string& into) {
  Buffer piece(kPieceBytes);
  const ssize_t got = ::recv(socket, piece.all().data(), piece.all().size(), 0);
  // A daemon that ends with bytes of ours unread resets the connection; what it said before has been read.
  if (got < 0 && errno == ECONNRESET) return 0;
  if (got < 0)
    return fail_errno(errno == EINTR ? Reason::Interrupted : Reason::Internal, "read the daemon's answer");
  into += piece.first(static_cast<std::size_t>(got));
  return static_cast<std::size_t>(got);
}

// Until it must have come; an end before is a truncated answer.
Status receive(int socket, std::string& into, Deadline deadline) {
  auto ready = wait_until(socket, deadline);
  if (!ready) return fail(std::move(ready));
  if (!*ready) return fail(Reason::UpstreamTimeout, "the daemon did not answer in time");
  auto got = read_more(socket, into);
  if (!got) return fail(std::move(got));
  if (*got == 0) return fail(Reason::UpstreamTruncated, "the daemon ended before it had answered");
  return {};
}

struct Head {
  int status = 0;
  bool is_stream = false;
  std::size_t body_bytes = 0;
};

Result<Head> parse_head(std::string_view text) {
  const auto lines = split(text, '\n');
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  Head head;
  const auto status =
      lines[0].starts_with(kVersion) ? parse_decimal(lines[0].substr(kVersion.size(), 3)) : std::nullopt;
  if (!status || *status < 200 || *status > 599) return malformed("its status");
  head.status = static_cast<int>(*status);
  for (const std::string_view line : lines) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string name = lowered(line.substr(0, colon));
    std::string_view value = line.substr(colon + 1);
    if (value.ends_with('\r')) value.remove_suffix(1);
    value = trimmed(value);
    if (name == "transfer-encoding") head.is_stream = value == "chunked";
    if (name == "content-length") {
      const auto bytes = parse_decimal(value, kMaxAnswerBytes);
      if (!bytes) return malformed("its length");
      head.body_bytes = *bytes;
    }
  }
  return head;
}

// `received` is then what came behind the head.
Result<Head> receive_head(int socket, std::string& received, Deadline deadline) {
  for (;;) {
    const std::size_t end = received.find(kHeadEnd);
    if (end != std::string::npos) {
      auto head = parse_head(std::string_view(received).substr(0, end));
      received.erase(0, end + kHeadEnd.size());
      return head;
    }
    if (received.size() > http::kMaxHeadBytes) return malformed("its head is too long");
    if (auto done = receive(socket, received, deadline); !done) return fail(std::move(done));
  }
}

std::unexpected<Error> refused(const Head& head, std::string_view body) {
  const auto value = parse_json(body);
  const json::object* answer = value ? value->if_object() : nullptr;
  auto error = answer == nullptr ? std::nullopt : error_in(*answer);
  if (!error) return malformed(fmt::format("status {}", head.status));
  return std::unexpected(std::move(*error));
}

// A whole answer behind `head`; refusals are errors.
Result<std::string> receive_body(int socket, const Head& head, std::string received, Deadline deadline) {
  while (received.size() < head.body_bytes) {
    if (auto done = receive(socket, received, deadline); !done) return fail(std::move(done));
  }
  if (received.size() > head.body_bytes) return malformed("it is longer than it says");
  if (head.status >= 300) return refused(head, received);
  return received;
}

std::string request_bytes(const ApiRequest& request) {
  std::string fields;
  std::string body;
  if (request.body) {
    body = json::serialize(*request.body);
    fields = fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  return fmt::format("{} {} HTTP/1.1\r\nHost: sallyport\r\n{}\r\n{}", request.method, request.target, fields,
                     body);
}

// The descriptors go with the first byte. A daemon that refuses before it has read all says why: so a closed
// pipe is no error here.
Status send_all(int socket, std::string_view bytes, const std::vector<int>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  bool with_descriptors = !descriptors.empty();
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (with_descriptors) {
      const std::size_t size = descriptors.size() * sizeof(int);
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(size);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(size);
      std::memcpy(CMSG_DATA(header), descriptors.data(), size);
    }
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return {};
    if (sent < 0) return fail_errno(Reason::UpstreamTimeout, "send to the daemon");
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    with_descriptors = false;
  }
  return {};
}

}  // namespace

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? "" : std::string(text->data(), text->size());
}

std::optional<Error> error_in(const json::object& answer) {
  const json::value* inner = answer.if_contains("error");
  if (inner == nullptr || !inner->is_object()) return std::nullopt;
  const json::object& error = inner->get_object();
  std::string detail = text_of(error, "message");
  if (const std::string hint = text_of(error, "hint"); !hint.empty()) detail += "\n" + hint;
  const auto reason = reason_from_code(text_of(error, "code"));
  return Error{reason && *reason != Reason::None ? *reason : Reason::Internal, std::move(detail)};
}

Result<Fd> ApiClient::send(const ApiRequest& request) const {
  if (request.descriptors.size() > kMaxDescriptors)
    return fail(Reason::Internal, "too many descriptors for a call");
  auto socket = os::connect_control(path_, self_);
  if (!socket && socket.error().reason == Reason::UpstreamUnreachable) {
    return fail(Reason::UpstreamUnreachable, fmt::format("sallyportd is not running ({}): start it with `{}`",
                                                         socket.error().detail, start_command_));
  }
  if (!socket) return socket;
  if (auto done = send_all(socket->get(), request_bytes(request), request.descriptors); !done) {
    return fail(std::move(done));
  }
  return socket;
}

Result<std::string> ApiClient::text(const ApiRequest& request, std::chrono::milliseconds limit) const {
  const Deadline deadline = Clock::now() + limit;
  auto socket = send(request);
  if (!socket) return fail(std::move(socket));
  std::string received;
  auto head = receive_head(socket->get(), received, deadline);
  if (!head) return fail(std::move(head));
  if (head->is_stream) return malformed("it is a stream");
  return receive_body(socket->get(), *head, std::move(received), deadline);
}

Result<json::value> ApiClient::call(const ApiRequest& request, std::chrono::milliseconds limit) const {
  auto body = text(request, limit);
  if (!body) return fail(std::move(body));
  auto value = parse_json(*body);
  if (!value) return malformed(value.error().detail);
  return value;
}

Result<ApiStream> ApiClient::stream(const ApiRequest& request, std::chrono::milliseconds limit) const {
  const Deadline deadline = Clock::now() + limit;
  auto socket = send(request);
  if (!socket) return fail(std::move(socket));
  std::string received;
  auto head = receive_head(socket->get(), received, deadline);
  if (!head) return fail(std::move(head));
  if (head->is_stream && head->status == 200) return ApiStream(std::move(*socket), std::move(received));
  auto body = receive_body(socket->get(), *head, std::move(received), deadline);
  if (!body) return fail(std::move(body));
  return malformed("it is no stream");
}

Status ApiStream::decode() {
  std::string_view in = received_;
  while (!in.empty() && !decoder_.finished()) {
    auto step = decoder_.decode(in);
    if (!step) return malformed("its chunks");
    lines_ += step->data;
    in.remove_prefix(step->consumed);
  }
  received_.clear();
  return {};
}

Result<ApiStream::Step> ApiStream::next(std::optional<std::chrono::milliseconds> wait) {
  const Deadline deadline = wait ? Deadline(Clock::now() + *wait) : std::nullopt;
  for (;;) {
    if (auto done = decode(); !done) return fail(std::move(done));
    if (const std::size_t end = lines_.find('\n'); end != std::string::npos) {
      auto value = parse_json(std::string_view(lines_).substr(0, end));
      lines_.erase(0, end + 1);
      if (!value) return malformed(value.error().detail);
      return Step{Step::Kind::Line, std::move(*value)};
    }
    if (decoder_.finished()) return Step{Step::Kind::End, nullptr};
    if (lines_.size() > kMaxQueuedBytes) return malformed("a line is too long");
    auto ready = wait_until(socket_.get(), deadline);
    if (!ready) return fail(std::move(ready));
    if (!*ready) return Step{Step::Kind::NotYet, nullptr};
    auto got = read_more(socket_.get(), received_);
    if (!got) return fail(std::move(got));
    if (*got == 0) return fail(Reason::UpstreamTruncated, "the daemon ended before the answer did");
  }
}

}  // namespace sallyport::control
