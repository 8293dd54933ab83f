// The head of one HTTP/1.1 request, read strictly: what does not have exactly one reading is refused, never
// repaired (RFC 9112, with every "MAY accept" answered no). An attacker chooses every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/host.h"

namespace sallyport::http {

struct Field {
  std::string name;   // lower case
  std::string value;  // without surrounding spaces and tabs; no control characters but tab
};

enum class BodyKind : std::uint8_t {
  None,
  Declared,  // Content-Length: exactly body_bytes bytes
  Chunked,
};

// Whether the connection can serve another request after this one.
enum class Persistence : std::uint8_t { KeepAlive, Close };

// As what a client addresses us, which decides how its requests name their target (RFC 9112, 3.2).
enum class Entry : std::uint8_t {
  Origin,  // "/path": origin-form
  Proxy,   // "http://host[:port]/path": absolute-form; and CONNECT "host:port": authority-form
};

struct RequestHead {
  std::string method;  // GET, HEAD, POST, PUT, DELETE, PATCH or OPTIONS; CONNECT at a proxy
  std::string target;  // origin-form, raw: starts with '/', visible ASCII, no '#'; "" of CONNECT
  policy::Authority host;
  std::vector<Field> fields;  // all of them, in the client's order
  BodyKind body = BodyKind::None;
  std::uint64_t body_bytes = 0;
  Persistence persistence = Persistence::KeepAlive;
  bool expects_continue = false;

  bool is_connect() const { return method == "CONNECT"; }
  // The value of the only field of that name, "" when there is none. BadRequest when it came twice.
  Result<std::string_view> single(std::string_view name) const;
};

// `bytes` is everything up to and including the blank line; `default_port` is the port of a Host without one
// (443 under TLS, 80 in the clear). Refuses with BadRequest, HeadTooLarge, TargetTooLong, ExpectationFailed,
// or IpLiteral (Host is an address).
//
// HTTP/1.0 is refused: it has no chunked encoding, so the end of an answer could not be told from a cut.
// Absolute-form, asterisk-form and authority-form are refused. What Upgrade asks for is not looked at here.
Result<RequestHead> parse_request_head(std::string_view bytes, std::uint16_t default_port);

// The same of a request to a proxy: `host` is the target's authority and `target` the rest of it, as if the
// request had come to that host. Any other form than Entry::Proxy's two is ProxyForm. A Host that names
// another authority is BadRequest; CONNECT may come without one, or with one that leaves the port out, and
// may be HTTP/1.0. It has no body, says nothing about one, and is its connection's last request.
// docs/proxy.md has the particulars for users.
Result<RequestHead> parse_proxy_request(std::string_view bytes);

// Finds the blank line while a head arrives in pieces, and refuses at once what cannot become a head any
// more, so that nobody has to wait for a timeout to learn it. The outcome never depends on the pieces.
class HeadScanner {
 public:
  explicit HeadScanner(Entry entry = Entry::Origin) : entry_(entry) {}

  // `bytes` is all that has come so far: what it was before, and possibly more. The size of the head with its
  // blank line, or nullopt when more is needed.
  Result<std::optional<std::size_t>> scan(std::string_view bytes);

 private:
  Status end_line(std::string_view line);

  Entry entry_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  std::size_t lines_ = 0;
};

}  // namespace sallyport::http
