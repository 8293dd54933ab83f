#include "upstream/answer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"
#include "upstream/limits.h"

namespace sallyport::upstream {
namespace {

// The largest body that can be declared: what fits every signed 64-bit counter behind us.
constexpr std::uint64_t kMaxBodyBytes = INT64_MAX;

constexpr int kSwitchingProtocols = 101;

// Of one connection, or framing: never passed on (RFC 9110, 7.6.1). Alt-Svc names another host or port for
// the same things, and HTTP/3 at that.
constexpr std::array<std::string_view, 8> kHopByHop{
    "alt-svc", "connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
};

// Without the bytes themselves: whoever chose them knows the credential, and this goes into the audit log.
std::unexpected<Error> malformed(std::string what) {
  return fail(Reason::UpstreamMalformed, std::move(what));
}

enum class Version : std::uint8_t { Http10, Http11 };

struct StatusLine {
  Version version;
  int status;
};

// "HTTP/1.1 200 OK"; the words, and the space before them, may be missing.
Result<StatusLine> parse_status_line(std::string_view line) {
  StatusLine out{Version::Http11, 0};
  if (line.starts_with("HTTP/1.0 ")) {
    out.version = Version::Http10;
  } else if (!line.starts_with("HTTP/1.1 ")) {
    return malformed("not an HTTP/1.1 status line");
  }
  const std::string_view rest = line.substr(9);
  const auto status = parse_decimal(rest.substr(0, 3), 599);
  const bool fits = status && *status >= 100 && (rest.size() == 3 || rest[3] == ' ') &&
                    std::ranges::all_of(rest, is_field_value_char);
  if (!fits) return malformed("status line");
  out.status = static_cast<int>(*status);
  return out;
}

Result<Header> parse_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return malformed("field line");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_field_value_char)) return malformed("field value");
  return Header{lowered(line.substr(0, colon)), std::string(value)};
}

// What the fields say about this connection and this body.
struct Fields {
  std::vector<Header> all;
  std::optional<std::uint64_t> length;
  bool chunked = false;
  bool close = false;
  std::vector<std::string> named_by_connection;
  std::string upgrade;

  Status add(Header field) {
    if (field.name == "content-length") {
      const auto bytes = parse_decimal(field.value, kMaxBodyBytes);
      if (length || !bytes) return malformed("Content-Length");
      length = bytes;
    } else if (field.name == "transfer-encoding") {
      if (chunked || !equals_ignoring_case(field.value, "chunked")) {
        return malformed("Transfer-Encoding");
      }
      chunked = true;
    } else if (field.name == "connection") {
      for (const std::string_view option : split(field.value, ',')) {
        named_by_connection.push_back(lowered(trimmed(option)));
        close = close || named_by_connection.back() == "close";
      }
    } else if (field.name == "upgrade") {
      if (!upgrade.empty()) return malformed("a second Upgrade");
      upgrade = lowered(field.value);
    }
    all.push_back(std::move(field));
    return {};
  }

  // RFC 9110, 7.8. To nothing, or to another protocol than was asked for, is nobody's wish.
  bool switches_to(const std::string& asked) const {
    return !asked.empty() && upgrade == asked &&
           std::ranges::find(named_by_connection, "upgrade") != named_by_connection.end();
  }

  bool passes_on(const std::string& name) const {
    return std::ranges::find(kHopByHop, name) == kHopByHop.end() && !name.starts_with("proxy-") &&
           std::ranges::find(named_by_connection, name) == named_by_connection.end();
  }
};

// RFC 9112, 6.3, without its repairs.
Result<AnswerFraming> framing_of(StatusLine line, const Fields& fields, const Asked& asked) {
  if (fields.chunked && fields.length) return malformed("Content-Length beside Transfer-Encoding");
  if (fields.chunked && line.version == Version::Http10) return malformed("Transfer-Encoding in HTTP/1.0");
  if (line.status == 304 || (asked.head && line.status >= 200)) return AnswerFraming::NoBody;
  if (line.status < 200 || line.status == 204) {
    if (fields.chunked || fields.length.value_or(0) != 0) {
      return malformed("a body behind status " + std::to_string(line.status));
    }
    return AnswerFraming::NoBody;
  }
  if (fields.chunked) return AnswerFraming::Chunked;
  if (fields.length) return AnswerFraming::Length;
  return AnswerFraming::UntilClose;
}

}  // namespace

std::string_view AnswerHead::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Header::name);
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

Result<ParsedAnswer> parse_answer_head(std::string_view text, const Asked& asked) {
  const auto next_line = [&] {
    const std::size_t end = text.find("\r\n");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
    return line;
  };
  const auto status = parse_status_line(next_line());
  if (!status) return std::unexpected(status.error());

  Fields fields;
  while (true) {
    const std::string_view line = next_line();
    if (line.empty()) break;
    if (fields.all.size() == kMaxAnswerFields) return malformed("too many fields");
    auto field = parse_field(line);
    if (!field) return fail(std::move(field));
    if (auto added = fields.add(std::move(*field)); !added) return fail(std::move(added));
  }
  if (!text.empty()) return malformed("bytes behind the head");

  const auto framing = framing_of(*status, fields, asked);
  if (!framing) return std::unexpected(framing.error());
  if (status->status == kSwitchingProtocols && !fields.switches_to(asked.upgrade)) {
    return malformed("status 101");
  }
  ParsedAnswer parsed;
  parsed.framing = *framing;
  parsed.keep_alive = status->version == Version::Http11 && !fields.close &&
                      *framing != AnswerFraming::UntilClose && status->status != kSwitchingProtocols;
  parsed.head.status = status->status;
  parsed.head.body_bytes = *framing == AnswerFraming::NoBody && !asked.head ? 0 : fields.length;
  for (Header& field : fields.all) {
    if (fields.passes_on(field.name)) parsed.head.headers.push_back(std::move(field));
  }
  return parsed;
}

Result<AnswerFramer::Step> AnswerFramer::feed(std::string_view in) {
  if (!in.empty()) untouched_ = false;
  switch (state_) {
    case State::Head:
      return feed_head(in);
    case State::Body:
      return feed_body(in);
    case State::Ended:
      return Step{.event = Event::End};
  }
  std::unreachable();
}

Result<AnswerFramer::Step> AnswerFramer::feed_head(std::string_view in) {
  Step step;
  for (const char c : in) {
    if (!accept_head_byte(c)) return malformed("byte in the answer's head");
    ++step.consumed;
    if (c != '\n' || !head_.ends_with("\r\n\r\n")) continue;
    const auto final = end_head();
    if (!final) return std::unexpected(final.error());
    if (!*final) continue;
    step.event = Event::Head;
    return step;
  }
  return step;
}

// The first bytes and the line ends are judged here and at once, so that a server that speaks something else
// is refused and not waited for.
bool AnswerFramer::accept_head_byte(char c) {
  constexpr std::string_view kStart = "HTTP/1.";
  if (head_.size() == kMaxAnswerHeadBytes || c == '\0') return false;
  if (head_.size() < kStart.size() && c != kStart[head_.size()]) return false;
  const bool after_cr = head_.ends_with('\r');
  if (after_cr != (c == '\n')) return false;
  head_.push_back(c);
  return true;
}

Result<bool> AnswerFramer::end_head() {
  auto parsed = parse_answer_head(head_, asked_);
  if (!parsed) return fail(std::move(parsed));
  head_ = std::string();
  if (parsed->head.status < 200 && parsed->head.status != kSwitchingProtocols) {
    if (++interim_ > kMaxInterimAnswers) return malformed("too many interim answers");
    return false;
  }
  parsed_ = std::move(*parsed);
  remaining_ = parsed_.head.body_bytes.value_or(0);
  const bool empty = parsed_.framing == AnswerFraming::NoBody ||
                     (parsed_.framing == AnswerFraming::Length && remaining_ == 0);
  state_ = empty ? State::Ended : State::Body;
  return true;
}

Result<AnswerFramer::Step> AnswerFramer::feed_body(std::string_view in) {
  Step step;
  if (in.empty()) return step;
  if (parsed_.framing == AnswerFraming::Chunked) {
    const auto decoded = chunks_.decode(in);
    if (!decoded) return std::unexpected(decoded.error());
    step.consumed = decoded->consumed;
    step.data = decoded->data;
    if (decoded->finished) state_ = State::Ended;
  } else {
    const bool counted = parsed_.framing == AnswerFraming::Length;
    step.consumed =
        counted ? static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, in.size())) : in.size();
    step.data = in.substr(0, step.consumed);
    if (counted) remaining_ -= step.consumed;
    if (counted && remaining_ == 0) state_ = State::Ended;
  }
  if (!step.data.empty()) {
    step.event = Event::Data;
  } else if (ended()) {
    step.event = Event::End;
  }
  return step;
}

Status AnswerFramer::end_of_input() {
  if (state_ == State::Body && parsed_.framing == AnswerFraming::UntilClose) state_ = State::Ended;
  if (ended()) return {};
  if (untouched_) return fail(Reason::UpstreamClosed, "closed before the answer");
  return fail(Reason::UpstreamTruncated, "closed in the middle of the answer");
}

}  // namespace sallyport::upstream
