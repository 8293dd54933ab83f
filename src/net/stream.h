// One connection's bytes, both directions. One coroutine may read while another writes; two readers or two
// writers at once are a bug, and so is destroying a stream on which somebody waits (close() it, and let them
// come back). After a timeout or close() the stream is finished: every later call fails. A failed write ends
// only our direction: what the peer said before it went can still be read, and then never ends orderly.
//
// SIGPIPE is ignored by whoever uses a TLS stream: OpenSSL writes with write(2).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "net/task.h"
#include "net/worker.h"

namespace sallyport::net {

// Which side of the gateway the peer is on: chooses ClientTimeout/ClientClosed or
// UpstreamTimeout/UpstreamClosed (a Vault peer: VaultUnavailable for both).
enum class Peer : std::uint8_t { Client, Upstream, Vault };

class Stream {
 public:
  virtual ~Stream() = default;

  // Waits, without holding a buffer, until read_some() would not.
  virtual Task<Status> wait_readable() = 0;
  // At least one byte, or 0 at the peer's orderly end (FIN; close_notify for TLS). A TLS stream that ends by
  // FIN without close_notify is an error here: it may have been cut.
  virtual Task<Result<std::size_t>> read_some(std::span<char> into) = 0;
  virtual Task<Status> write_all(std::string_view bytes) = 0;
  // Whoever waits to read or write gets an error; the connection stays as it is.
  virtual void stop_waiting() noexcept = 0;
  // Ends our direction (FIN; close_notify for TLS). Reading goes on.
  virtual Task<Status> shutdown_write() = 0;
  // At once, and without ceremony; whoever waits on the stream gets an error. Idempotent.
  virtual void close() noexcept = 0;
  // The socket of a stream that is nothing more (no TLS), for other uses; the stream is closed then. Nobody
  // waits on it.
  virtual Fd release() { return {}; }
  // True when the connection is open and nothing waits to be read: an idle one may be used again. Never
  // waits.
  virtual bool quiet() { return false; }

  // Every byte moved in either direction pushes the limit away; past it the stream times out.
  virtual void limit_idle(Clock::duration limit) = 0;
  // A fixed end, whatever moves: for heads and handshakes. Replaces the idle limit until limit_idle() is
  // called again.
  virtual void limit_total(Clock::duration limit) = 0;
  // No limit at all.
  virtual void no_limit() = 0;
};

// A connected stream socket (TCP or Unix), made non-blocking here.
std::unique_ptr<Stream> make_socket_stream(Worker& worker, Fd socket, Peer peer);

}  // namespace sallyport::net
