// The requests of one connection, whose host is known, one after the other: each is judged by itself, and
// after one that cannot be read in exactly one way none is served any more.
#pragma once

#include "git/gateway.h"
#include "net/stream.h"
#include "net/task.h"

namespace sallyport::gate {

// Until either side ends the connection. `context` and `stream` outlive the call.
net::Task<> serve_requests(const git::Context& context, git::ClientSide client, net::Stream& stream);

}  // namespace sallyport::gate
