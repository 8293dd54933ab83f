// One request to one upstream and its answer, whoever carries it: the gate itself (anonymous), or the vault
// (with a credential) at the other end of a lane.
//
// Body and answer move independently: one coroutine may send the body while another reads the answer, and an
// answer may come before the body ends. Dropping an unfinished exchange closes its connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/stream.h"
#include "net/task.h"
#include "policy/decide.h"

namespace sallyport::upstream {

struct Header {
  std::string name;   // lower case
  std::string value;  // no CR, LF, NUL
};

enum class BodyKind : std::uint8_t {
  None,      // no body, and no Content-Length
  Declared,  // exactly body_bytes bytes
  Open,      // until end_body(); chunked upstream
};

using policy::Scheme;

// Exactly what goes on the wire, already judged.
struct Request {
  std::string request_id;
  // With a credential: index into Grant::git, what the gate judged; the vault judges again.
  std::size_t rule = 0;
  policy::HostName host;
  std::uint16_t port = 443;
  Scheme scheme = Scheme::Https;  // with a credential only Https
  std::string method;             // never CONNECT
  std::string target;             // origin-form
  // Beside a credential only names from kForwardedHeaders; never framing, Host or hop-by-hop fields, which
  // are written by whoever talks to the upstream.
  std::vector<Header> headers;
  std::string upgrade;  // "": none; the protocol that a 101 may switch to ("websocket"), without a body
  BodyKind body = BodyKind::None;
  std::uint64_t body_bytes = 0;
  // Asked once more when there is a connection, before anything is sent; empty: it is. Reaching an upstream
  // takes time, and meanwhile it may be Revoked.
  std::function<bool()> still_wanted = {};
};

// The request headers that may travel beside a credential. Everything else is dropped by the gate and refused
// by the vault.
inline constexpr std::string_view kForwardedHeaders[] = {
    "accept",       "accept-encoding", "accept-language", "content-encoding",
    "content-type", "git-protocol",    "pragma",          "user-agent",
};

struct AnswerHead {
  int status = 0;
  std::vector<Header> headers;  // names lower case, upstream's order; no framing, hop-by-hop or Alt-Svc
  std::optional<std::uint64_t>
      body_bytes;  // when upstream declared it; for HEAD, of the body that is not sent

  std::string_view header(std::string_view name) const;  // "" when absent
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  // Sends body bytes. A failure here does not mean that there is no answer: read_head() may still succeed.
  virtual net::Task<Status> send_body(std::string_view bytes) = 0;
  // The body is complete (a Declared one must be). Called once, also for BodyKind::None.
  virtual net::Task<Status> end_body() = 0;

  // The final answer's head (1xx are swallowed), or that of a 101 to a request with an upgrade. Errors are
  // Upstream* or Vault* reasons.
  virtual net::Task<Result<AnswerHead>> read_head() = 0;
  // The answer's body: at least one byte, or 0 at its clean end; UpstreamTruncated when it was cut.
  virtual net::Task<Result<std::size_t>> read_body(std::span<char> into) = 0;

  // After a 101: the connection, which speaks the other protocol from now on. Internal at any other moment;
  // the exchange is of no use afterwards.
  struct Switched {
    std::unique_ptr<net::Stream> stream;
    std::string early;  // what the upstream said behind the 101
  };
  virtual Result<Switched> take_stream() { return fail(Reason::Internal, "nothing was switched"); }

  // Closes the connection at once; whoever waits on the exchange gets an error. Idempotent. (An exchange must
  // not be destroyed while somebody waits on it.)
  virtual void abort() noexcept = 0;
};

class Opener {
 public:
  virtual ~Opener() = default;
  // Reaches the upstream and sends the head.
  virtual net::Task<Result<std::unique_ptr<Exchange>>> open(Request request) = 0;
  // After a TooMany: how long until it is worth another try; 0 where that is not known.
  virtual std::chrono::duration<double> time_to_retry() { return {}; }
};

}  // namespace sallyport::upstream
