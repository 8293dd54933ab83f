// Moves one request's body to the upstream and its answer back, both at once and each no faster than its
// reader. Memory is constant whatever the size.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "http/connection.h"
#include "net/task.h"
#include "policy/git_route.h"
#include "upstream/exchange.h"

namespace sallyport::git {

struct Outcome {
  Error error{Reason::None, {}};  // None: the whole answer was passed on
  int upstream_status = 0;        // 0: there was no answer
  std::uint64_t bytes_in = 0;     // body bytes towards the upstream
  std::uint64_t bytes_out = 0;    // body bytes towards the client
};

// `prefix` goes first, then what is left of the request's body. `upstream_idle`: how long the exchange lets
// the upstream be silent; while the answer flows the client gets kAnswerGrace more. Everything borrowed
// outlives the call, and the exchange is of no use afterwards.
//
// When it fails before the answer has begun the client has seen nothing, and can be told; afterwards the
// connection was aborted, so that the client sees the cut. Either way, and also after an early answer, the
// rest of the body may be drained.
net::Task<Outcome> transfer(http::Connection& connection, upstream::Exchange& exchange,
                            const policy::GitRoute& route, std::string prefix,
                            net::Clock::duration upstream_idle);

// Whether an answer may be passed on: 200 with git's content type. Everything else is an Upstream* reason;
// neither a redirect's target nor a login page ever reaches the client.
Status judge_answer(const policy::GitRoute& route, const upstream::AnswerHead& head);

}  // namespace sallyport::git
