#include "http/request_head.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "http/limits.h"
#include "policy/rule.h"

namespace sallyport::http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kVersion = "HTTP/1.1";
// Of a CONNECT alone: Python and OpenSSL say no more, and what follows has no framing of either version.
constexpr std::string_view kConnectVersion = "HTTP/1.0";
constexpr std::string_view kConnect = "CONNECT";
using policy::kHttpPort;
constexpr std::array<std::string_view, 7> kMethods{"GET",    "HEAD",  "POST",   "PUT",
                                                   "DELETE", "PATCH", "OPTIONS"};
// Methods whose body has no meaning (RFC 9110, 9.3): a body there is a request hidden from whoever ignores
// it.
constexpr std::array<std::string_view, 3> kBodilessMethods{"GET", "HEAD", "DELETE"};

std::unexpected<Error> bad(std::string detail) {
  return fail(Reason::BadRequest, std::move(detail));
}

struct RequestLine {
  std::string_view method;
  std::string_view path;                       // origin-form; "" of CONNECT
  std::optional<policy::Authority> authority;  // of a request to a proxy
};

bool is_target_char(char c) {
  return is_visible(c) && c != '#' && c != '\\';
}

std::unexpected<Error> bad_form(std::string_view what, std::string_view target) {
  return fail(Reason::ProxyForm, std::string(what) + ": '" + escaped(target) + "'");
}

// RFC 9112, 3.2.3: the port is no part that could be left out.
Result<RequestLine> parse_authority_form(std::string_view target) {
  constexpr std::uint16_t kNoPort = 0;
  auto authority = policy::parse_authority(target, kNoPort);
  if (!authority) return fail(std::move(authority));
  if (authority->port == kNoPort) return bad_form("CONNECT without a port", target);
  return RequestLine{kConnect, "", std::move(*authority)};
}

// RFC 9112, 3.2.2.
Result<RequestLine> parse_absolute_form(std::string_view method, std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with('/')) return bad_form("origin-form at a proxy", target);
  if (target.starts_with("https://")) return bad_form("https:// without CONNECT", target);
  if (!target.starts_with(kScheme)) return bad_form("target is not http://", target);
  const std::string_view rest = target.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return bad_form("no path behind the host", target);
  auto authority = policy::parse_authority(rest.substr(0, slash), kHttpPort);
  if (!authority) return fail(std::move(authority));
  return RequestLine{method, rest.substr(slash), std::move(*authority)};
}

// RFC 9112, 3: method SP request-target SP HTTP-version, single spaces.
Result<RequestLine> parse_request_line(std::string_view line, Entry entry) {
  const std::vector<std::string_view> words = split(line, ' ');
  if (words.size() != 3) return bad("request line is not three words");
  const std::string_view method = words[0];
  const bool is_connect = entry == Entry::Proxy && method == kConnect;
  if (!is_connect && std::ranges::find(kMethods, method) == kMethods.end()) {
    return bad("unknown method '" + escaped(method) + "'");
  }
  if (words[2] != kVersion && !(is_connect && words[2] == kConnectVersion))
    return bad("version is not HTTP/1.1: '" + escaped(words[2]) + "'");
  const std::string_view target = words[1];
  if (target.size() > kMaxTargetBytes) return fail(Reason::TargetTooLong, "request target");
  if (!std::ranges::all_of(target, is_target_char)) {
    return bad("character in target: '" + escaped(target) + "'");
  }
  if (is_connect) return parse_authority_form(target);
  if (entry == Entry::Proxy) return parse_absolute_form(method, target);
  if (!target.starts_with('/')) return bad("target is not in origin-form: '" + escaped(target) + "'");
  return RequestLine{method, target, std::nullopt};
}

// RFC 9112, 5.1: no space before the colon. A folded line (5.2) has no name, and falls here too.
Result<Field> parse_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return bad("malformed field '" + escaped(line) + "'");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_field_value_char)) return bad("control character in a field's value");
  return Field{lowered(line.substr(0, colon)), std::string(value)};
}

// All fields of that name; most may come once at most.
std::vector<std::string_view> values(const std::vector<Field>& fields, std::string_view name) {
  std::vector<std::string_view> found;
  for (const Field& field : fields) {
    if (field.name == name) found.emplace_back(field.value);
  }
  return found;
}

// RFC 9112, 6.3, where anything doubtful is an error: this is where requests are smuggled.
Status read_framing(RequestHead& head) {
  const auto lengths = values(head.fields, "content-length");
  const auto codings = values(head.fields, "transfer-encoding");
  if (lengths.size() + codings.size() > 1) return bad("more than one statement of the body's length");
  if (head.is_connect() && lengths.size() + codings.size() > 0) return bad("CONNECT with a body's length");
  if (!codings.empty()) {
    if (!equals_ignoring_case(codings[0], "chunked")) return bad("transfer coding other than chunked");
    head.body = BodyKind::Chunked;
  }
  if (!lengths.empty()) {
    const auto length = parse_decimal(lengths[0]);
    if (!length) return bad("Content-Length is not a number");
    head.body = BodyKind::Declared;
    head.body_bytes = *length;
  }
  if (std::ranges::find(kBodilessMethods, head.method) != kBodilessMethods.end()) {
    if (head.body == BodyKind::Chunked || head.body_bytes > 0) return bad(head.method + " with a body");
    head.body = BodyKind::None;
  }
  return {};
}

Result<policy::Authority> read_host(const std::vector<Field>& fields, std::uint16_t default_port) {
  const auto hosts = values(fields, "host");
  if (hosts.size() != 1) return bad("not exactly one Host");
  return policy::parse_authority(hosts[0], default_port);
}

// RFC 9112, 3.2.2: a proxy goes by the target. Where Host says something else, a reader behind us might not.
Status check_host(const std::vector<Field>& fields, std::string_view method,
                  const policy::Authority& authority) {
  const bool is_connect = method == kConnect;
  if (is_connect && values(fields, "host").empty()) return {};
  const auto host = read_host(fields, is_connect ? authority.port : kHttpPort);
  if (!host) return fail(Result(host));
  if (host->host != authority.host || host->port != authority.port) {
    return bad("Host is not the target's: '" + escaped(host->host.str()) + "'");
  }
  return {};
}

// RFC 9110, 7.6.1: a list of tokens. Only "close" has a meaning here: every other named field stays behind
// anyway.
Status read_connection(RequestHead& head) {
  for (const std::string_view list : values(head.fields, "connection")) {
    for (const std::string_view item : split(list, ',')) {
      const std::string_view option = trimmed(item);
      if (!is_token(option)) return bad("malformed Connection");
      if (equals_ignoring_case(option, "close")) head.persistence = Persistence::Close;
    }
  }
  return {};
}

Status read_expect(RequestHead& head) {
  const auto expectations = values(head.fields, "expect");
  if (expectations.empty()) return {};
  if (expectations.size() > 1 || !equals_ignoring_case(expectations[0], "100-continue")) {
    return fail(Reason::ExpectationFailed, "Expect: '" + escaped(expectations[0]) + "'");
  }
  head.expects_continue = true;
  return {};
}

Result<std::vector<Field>> parse_fields(std::string_view bytes, std::size_t line_end) {
  std::vector<Field> fields;
  for (;;) {
    const std::size_t start = line_end + kLineEnd.size();
    line_end = bytes.find(kLineEnd, start);
    if (line_end == start) return fields;
    auto field = parse_field(bytes.substr(start, line_end - start));
    if (!field) return fail(std::move(field));
    fields.push_back(std::move(*field));
  }
}

// The one authority that the request names, in however many places.
Result<policy::Authority> read_authority(const RequestLine& line, const std::vector<Field>& fields,
                                         std::uint16_t default_port) {
  if (!line.authority) return read_host(fields, default_port);
  if (auto ok = check_host(fields, line.method, *line.authority); !ok) return fail(std::move(ok));
  return *line.authority;
}

Result<RequestHead> parse_head(std::string_view bytes, Entry entry, std::uint16_t default_port) {
  HeadScanner scanner(entry);
  const auto size = scanner.scan(bytes);
  if (!size) return fail(Result(size));
  if (*size != bytes.size()) return bad("not exactly one head");

  const std::size_t line_end = bytes.find(kLineEnd);
  const auto line = parse_request_line(bytes.substr(0, line_end), entry);
  if (!line) return fail(Result(line));
  auto fields = parse_fields(bytes, line_end);
  if (!fields) return fail(std::move(fields));
  auto host = read_authority(*line, *fields, default_port);
  if (!host) return fail(std::move(host));

  RequestHead head{.method = std::string(line->method),
                   .target = std::string(line->path),
                   .host = std::move(*host),
                   .fields = std::move(*fields)};
  if (auto ok = read_framing(head); !ok) return fail(std::move(ok));
  if (auto ok = read_connection(head); !ok) return fail(std::move(ok));
  if (auto ok = read_expect(head); !ok) return fail(std::move(ok));
  // What a client sends behind a CONNECT is the tunnel's, never a request, also where it is refused.
  if (head.is_connect()) head.persistence = Persistence::Close;
  return head;
}

}  // namespace

Result<std::string_view> RequestHead::single(std::string_view name) const {
  const auto found = values(fields, name);
  if (found.size() > 1) return bad("field '" + std::string(name) + "' came twice");
  return found.empty() ? std::string_view{} : found[0];
}

Result<RequestHead> parse_request_head(std::string_view bytes, std::uint16_t default_port) {
  return parse_head(bytes, Entry::Origin, default_port);
}

Result<RequestHead> parse_proxy_request(std::string_view bytes) {
  return parse_head(bytes, Entry::Proxy, kHttpPort);
}

Result<std::optional<std::size_t>> HeadScanner::scan(std::string_view bytes) {
  for (; at_ < bytes.size(); ++at_) {
    if (at_ == kMaxHeadBytes) return fail(Reason::HeadTooLarge, "head");
    const char c = bytes[at_];
    const bool after_cr = at_ > line_start_ && bytes[at_ - 1] == '\r';
    if ((c == '\n') != after_cr) return bad("CR or LF by itself in the head");
    if (c != '\n') {
      if (at_ - line_start_ > kMaxLineBytes) {
        return fail(lines_ == 0 ? Reason::TargetTooLong : Reason::HeadTooLarge, "line");
      }
      continue;
    }
    const std::string_view line = bytes.substr(line_start_, at_ - 1 - line_start_);
    if (line.empty() && lines_ > 0) return ++at_;
    if (auto ok = end_line(line); !ok) return fail(std::move(ok));
    line_start_ = at_ + 1;
  }
  return std::nullopt;
}

Status HeadScanner::end_line(std::string_view line) {
  ++lines_;
  if (lines_ == 1) {
    if (auto parsed = parse_request_line(line, entry_); !parsed) return fail(std::move(parsed));
    return {};
  }
  if (lines_ > kMaxFields + 1) return fail(Reason::HeadTooLarge, "more fields than allowed");
  return {};
}

}  // namespace sallyport::http
