#include "upstream/http_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/buffer.h"
#include "base/text.h"
#include "policy/decide.h"

namespace sallyport::upstream {
namespace {

// Read at once while the head is awaited; with the head the body's first bytes may come.
constexpr std::size_t kReadBytes = 16 * 1024;
// The longest size line of a chunk of kChunkBytes.
constexpr std::size_t kChunkFramingBytes = 16;

// Ours to write, or of the connection between client and gate alone.
constexpr std::string_view kNeverForwarded[] = {
    "connection", "content-length",    "expect",  "host",           "keep-alive", "te",
    "trailer",    "transfer-encoding", "upgrade", "http2-settings",
};

bool is_own_field(std::string_view name) {
  return is_token(name) && std::ranges::none_of(name, is_upper) && !name.starts_with("proxy-") &&
         std::ranges::find(kNeverForwarded, name) == std::end(kNeverForwarded);
}

bool may_travel(const Header& header, Carries carries) {
  const bool may = carries == Carries::Nothing
                       ? is_own_field(header.name)
                       : std::ranges::find(kForwardedHeaders, header.name) != std::end(kForwardedHeaders);
  return may && std::ranges::all_of(header.value, is_field_value_char);
}

// The gate has judged all of it; what is wrong here is a bug, or a gate that is not ours any more.
Status check(const Request& request, Carries carries) {
  if (carries == Carries::Credential && request.scheme != Scheme::Https) {
    return fail(Reason::Internal, "a credential goes over https only");
  }
  // The answer to a CONNECT is framed in another way (RFC 9112, 6.3).
  if (!is_token(request.method) || request.method == "CONNECT") return fail(Reason::Internal, "the method");
  if (!request.target.starts_with('/') || !std::ranges::all_of(request.target, is_visible)) {
    return fail(Reason::Internal, "the target");
  }
  const bool upgrades = !request.upgrade.empty();
  if (upgrades &&
      (carries == Carries::Credential || request.body != BodyKind::None || !is_token(request.upgrade))) {
    return fail(Reason::Internal, "an upgrade that may not be");
  }
  for (const Header& header : request.headers) {
    if (!may_travel(header, carries))
      return fail(Reason::Internal, "header '" + header.name + "' may not travel");
  }
  return {};
}

std::uint16_t default_port(Scheme scheme) {
  return scheme == Scheme::Https ? policy::kHttpsPort : policy::kHttpPort;
}

}  // namespace

Result<std::string> request_head(const Request& request, Carries carries) {
  if (auto good = check(request, carries); !good) return fail(std::move(good));
  std::string head =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}", request.method, request.target, request.host.str());
  if (request.port != default_port(request.scheme)) head += fmt::format(":{}", request.port);
  head += "\r\n";
  for (const Header& header : request.headers) head += header.name + ": " + header.value + "\r\n";
  if (!request.upgrade.empty()) head += "Connection: Upgrade\r\nUpgrade: " + request.upgrade + "\r\n";
  switch (request.body) {
    case BodyKind::None:
      break;
    case BodyKind::Declared:
      head += fmt::format("Content-Length: {}\r\n", request.body_bytes);
      break;
    case BodyKind::Open:
      head += "Transfer-Encoding: chunked\r\n";
      break;
  }
  return head;
}

HttpExchange::HttpExchange(std::unique_ptr<net::Stream> stream, const Request& request,
                           policy::Timeouts timeouts, GiveBack give_back)
    : stream_(std::move(stream)),
      body_(request.body),
      left_to_send_(request.body == BodyKind::Declared ? request.body_bytes : 0),
      timeouts_(timeouts),
      give_back_(std::move(give_back)),
      framer_({.head = request.method == "HEAD", .upgrade = request.upgrade}) {
  stream_->limit_idle(timeouts_.idle);
}

HttpExchange::~HttpExchange() {
  const bool reusable = body_ended_ && framer_.reusable() && left_over_.empty() && !surplus_;
  if (reusable && give_back_) give_back_(std::move(stream_));
}

net::Task<Status> HttpExchange::send_head(std::string head, const Secret* credential_line) {
  const std::string_view credential = credential_line != nullptr ? credential_line->expose() : "";
  const std::size_t most = credential.empty() ? kMaxRequestHeadBytes : kMaxCredentialedHeadBytes;
  if (head.size() + credential.size() + 4 > most) {
    co_return fail(Reason::HeadTooLarge, "the request's head for the upstream");
  }
  if (credential.empty()) co_return co_await stream_->write_all(head += "\r\n");
  if (credential.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    co_return fail(Reason::CredentialUnavailable, "the credential holds a line end");
  }
  // In one write, and from memory that is locked and wiped.
  auto whole = Secret::with_capacity(head.size() + credential.size() + 4);
  if (!whole) co_return fail(std::move(whole));
  if (!whole->append(head) || !whole->append(credential) || !whole->append("\r\n\r\n")) {
    co_return fail(Reason::Internal, "the request's head does not fit");
  }
  co_return co_await stream_->write_all(whole->expose());
}

net::Task<Status> HttpExchange::send_body(std::string_view bytes) {
  if (bytes.empty()) co_return Status();  // an empty chunk would end the body
  if (body_ended_) co_return fail(Reason::Internal, "body bytes behind the body's end");
  switch (body_) {
    case BodyKind::None:
      co_return fail(Reason::Internal, "body bytes for a request without body");
    case BodyKind::Declared:
      if (bytes.size() > left_to_send_) co_return fail(Reason::Internal, "more body than was declared");
      left_to_send_ -= bytes.size();
      co_return co_await stream_->write_all(bytes);
    case BodyKind::Open:
      co_return co_await send_chunks(bytes);
  }
  std::unreachable();
}

net::Task<Status> HttpExchange::send_chunks(std::string_view bytes) {
  std::string chunk;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kChunkBytes);
    bytes.remove_prefix(piece.size());
    chunk.clear();
    chunk.reserve(piece.size() + kChunkFramingBytes);
    fmt::format_to(std::back_inserter(chunk), "{:x}\r\n", piece.size());
    chunk += piece;
    chunk += "\r\n";
    if (auto status = co_await stream_->write_all(chunk); !status) co_return status;
  }
  co_return Status();
}

net::Task<Status> HttpExchange::end_body() {
  if (body_ended_) co_return fail(Reason::Internal, "the body ended already");
  if (left_to_send_ > 0) co_return fail(Reason::Internal, "less body than was declared");
  if (body_ == BodyKind::Open) {
    if (auto status = co_await stream_->write_all("0\r\n\r\n"); !status) co_return status;
  }
  body_ended_ = true;
  // In all, whatever moves: neither interim answers nor a head that drips push it away.
  if (!head_read_) stream_->limit_total(timeouts_.first_byte);
  co_return Status();
}

net::Task<Result<AnswerHead>> HttpExchange::read_head() {
  for (;;) {
    // Servers take long before they answer: no buffer meanwhile.
    if (auto status = co_await stream_->wait_readable(); !status) co_return fail(std::move(status));
    Buffer buffer(kReadBytes);
    const auto got = co_await stream_->read_some(buffer.all());
    if (!got) {
      const bool cut = !framer_.untouched() && got.error().reason == Reason::UpstreamClosed;
      co_return fail(cut ? Reason::UpstreamTruncated : got.error().reason, got.error().detail);
    }
    if (*got == 0) {
      auto status = framer_.end_of_input();
      co_return fail(std::move(status));
    }
    const std::string_view in = buffer.first(*got);
    const auto step = framer_.feed(in);
    if (!step) co_return std::unexpected(step.error());
    if (step->event != AnswerFramer::Event::Head) {
      limit_early_head();
      continue;
    }
    left_over_ = in.substr(step->consumed);
    head_read_ = true;
    stream_->limit_idle(timeouts_.idle);
    AnswerHead head = framer_.take_head();
    switched_ = head.status < 200;
    co_return head;
  }
}

// An answer that begins while the body still flows: a head that drips must not live as long as that moves.
void HttpExchange::limit_early_head() {
  if (body_ended_) return;
  if (framer_.inside_head() && !early_head_) stream_->limit_total(timeouts_.idle);
  if (!framer_.inside_head() && early_head_) stream_->limit_idle(timeouts_.idle);
  early_head_ = framer_.inside_head();
}

net::Task<Result<std::size_t>> HttpExchange::read_body(std::span<char> into) {
  while (!framer_.ended()) {
    const auto filled = co_await next_bytes(into);
    if (!filled) {
      const bool cut = filled.error().reason == Reason::UpstreamClosed;
      co_return fail(cut ? Reason::UpstreamTruncated : filled.error().reason, filled.error().detail);
    }
    if (*filled == 0) {
      if (auto status = framer_.end_of_input(); !status) co_return fail(std::move(status));
      break;
    }
    const auto kept = unframe(into, *filled);
    if (!kept || *kept > 0) co_return kept;
  }
  co_return std::size_t{0};
}

Result<Exchange::Switched> HttpExchange::take_stream() {
  if (!std::exchange(switched_, false)) return fail(Reason::Internal, "nothing was switched");
  return Switched{std::move(stream_), std::move(left_over_)};
}

net::Task<Result<std::size_t>> HttpExchange::next_bytes(std::span<char> into) {
  if (left_over_.empty()) co_return co_await stream_->read_some(into);
  const std::size_t take = std::min(into.size(), left_over_.size());
  std::memcpy(into.data(), left_over_.data(), take);
  left_over_.erase(0, take);
  if (left_over_.empty()) left_over_ = std::string();  // its memory too
  co_return take;
}

Result<std::size_t> HttpExchange::unframe(std::span<char> into, std::size_t filled) {
  std::string_view in(into.data(), filled);
  std::size_t kept = 0;
  while (!in.empty() && !framer_.ended()) {
    const auto step = framer_.feed(in);
    if (!step) return std::unexpected(step.error());
    if (!step->data.empty()) std::memmove(into.data() + kept, step->data.data(), step->data.size());
    kept += step->data.size();
    in.remove_prefix(step->consumed);
  }
  surplus_ = !in.empty();
  return kept;
}

}  // namespace sallyport::upstream
