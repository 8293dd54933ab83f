// Carries one request to its upstream: moves its body there and its answer back, both at once and each no
// faster than its reader. Memory is constant whatever the size.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "forward/live.h"
#include "http/connection.h"
#include "net/task.h"
#include "upstream/exchange.h"

namespace sallyport::forward {

struct Outcome {
  Error error{Reason::None, {}};  // None: the whole answer was passed on
  int upstream_status = 0;        // 0: there was no answer
  std::uint64_t bytes_in = 0;     // body bytes towards the upstream
  std::uint64_t bytes_out = 0;    // body bytes towards the client
  // After a 101, of which the client has seen nothing yet: its head, and the connection.
  std::optional<upstream::AnswerHead> switched_head;
  std::optional<upstream::Exchange::Switched> switched;
};

// What the client gets of an answer.
class Passage {
 public:
  struct Reply {
    int status = 0;
    std::vector<http::Field> fields;      // without framing
    std::optional<std::uint64_t> length;  // nullopt: not known
  };

  virtual ~Passage() = default;
  // Fails when the client gets nothing of this answer.
  virtual Result<Reply> begin(upstream::AnswerHead head) = 0;
  // The body as it comes, a piece at a time; what is returned holds until the next call.
  virtual Result<std::string_view> pass(std::string_view bytes) { return bytes; }
  virtual Status end() { return {}; }
};

struct Journey {
  http::Connection& connection;
  Live::Entry& live;
  upstream::Opener& opener;
  upstream::Request request;
  Passage& passage;
  // How long the exchange lets the upstream be silent; while the answer flows the client gets kAnswerGrace
  // more.
  net::Clock::duration upstream_idle;
  std::string prefix = {};  // goes first, then what is left of the request's body
  std::uint64_t max_body = std::numeric_limits<std::uint64_t>::max();  // TooLarge beyond
};

// Reaches the upstream, lets the client go on with its body, and carries. Everything borrowed outlives the
// call. Revoked as soon as `live` is: nothing more moves then in either direction.
//
// When it fails before the answer has begun the client has seen nothing, and can be told; afterwards the
// connection was aborted, so that the client sees the cut. Either way, and also after an early answer, the
// rest of the body may be drained.
net::Task<Outcome> carry(Journey journey);

}  // namespace sallyport::forward
