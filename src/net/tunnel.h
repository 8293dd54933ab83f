// A raw tunnel: whatever bytes come from one of two connected sockets go to the other, moved by splice(2)
// without ever being seen. The end of one direction is passed on (FIN), and the other direction goes on; any
// end but that of both is passed on as a reset, so that nobody takes a cut stream for a whole one.
//
// An idle tunnel holds neither a buffer nor a pipe: a pipe is taken when bytes can be read, and given back
// once they are written and no more have come.
//
// SIGPIPE is ignored by whoever uses a tunnel: splice(2) has no MSG_NOSIGNAL.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/rate.h"
#include "base/result.h"
#include "net/event.h"
#include "net/readiness.h"
#include "net/task.h"
#include "net/worker.h"
#include "policy/limits.h"

namespace sallyport::net {

// Asked for; the kernel gives less to a user who has many. It is room for many small pieces, not memory.
inline constexpr std::size_t kMaxPipeBytes = std::size_t{1024} * 1024;
// In one direction of one tunnel between its sockets: what a reader that stalls keeps of our memory.
inline constexpr std::size_t kMaxBytesInPipe = std::size_t{256} * 1024;
// Kept open for the next tunnel that has something to move.
inline constexpr std::size_t kMaxPooledPipes = 16;

struct Pipe {
  Fd out;  // read from here
  Fd in;
};

// Empty pipes of one worker, to spare making one for every burst. Outlives the tunnels.
class PipePool {
 public:
  // Fails when the process has no more descriptors.
  Result<Pipe> take();
  // Of an empty pipe. One that is not is closed by whoever has it.
  void give_back(Pipe pipe);
  std::size_t size() const { return pipes_.size(); }

 private:
  std::vector<Pipe> pipes_;
};

struct TunnelLimits {
  Clock::duration idle = policy::Limits{}.tunnel_idle;  // without a byte in either direction
  Clock::duration life = policy::Limits{}.tunnel_life;
  std::uint64_t max_bytes_up = UINT64_MAX;  // client to upstream
  std::uint64_t max_bytes_down = UINT64_MAX;
  // What the tunnel shares with others, in bytes: it ends when one is spent. Borrowed; nullptr: no limit.
  TokenBucket* budget_up = nullptr;
  TokenBucket* budget_down = nullptr;
};

// Bytes that were read before there was a tunnel. They count as moved by it.
struct TunnelStart {
  std::string to_upstream;
  std::string to_client;
};

enum class TunnelEnding : std::uint8_t {
  Clean,  // both directions came to their end
  ClientReset,
  UpstreamReset,
  Idle,
  Life,
  CapUp,    // the client had more to send than max_bytes_up
  CapDown,  // the upstream had more to send than max_bytes_down
  Spent,    // a budget
  Closed,   // by close()
  NoPipe,   // out of descriptors
};

struct TunnelEnd {
  TunnelEnding why;
  std::uint64_t bytes_up;  // written to the upstream's socket
  std::uint64_t bytes_down;
};

class Tunnel {
 public:
  // Two connected stream sockets. `pipes` outlives the tunnel.
  Tunnel(Worker& worker, PipePool& pipes, Fd client, Fd upstream, TunnelLimits limits);
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;

  // Until the tunnel has ended, and both sockets are closed. Once. The tunnel outlives it.
  Task<TunnelEnd> run(TunnelStart start);
  // Ends it at once, from outside. Idempotent.
  void close() noexcept { end(TunnelEnding::Closed); }

 private:
  // One side, and what may become of it.
  struct Side {
    Readiness socket;
    TunnelEnding reset;
    bool write_failed = false;
  };
  struct Direction {
    Side& from;
    Side& to;
    std::uint64_t max_bytes;
    TunnelEnding cap;
    TokenBucket* budget;
    std::uint64_t bytes = 0;
  };

  // Of these, false means that the direction is over.
  Task<bool> write_early(Direction& direction, std::string early);
  Task<bool> move_burst(Direction& direction);
  Task<bool> drain(Direction& direction, Pipe& pipe, std::size_t bytes);
  Task<bool> wait_to_write(Direction& direction, int error);

  Task<> move(Direction& direction, std::string early);
  Task<> move_down(std::string early);
  bool count(Direction& direction, std::size_t bytes);
  void pass_end_on(Direction& direction);
  TunnelEnding ending() const;
  void end(TunnelEnding why) noexcept;

  Worker& worker_;
  PipePool& pipes_;
  TunnelLimits limits_;
  Side client_;
  Side upstream_;
  Direction up_;
  Direction down_;
  Deadline idle_;
  Deadline life_;
  Event down_ended_;
  std::optional<TunnelEnding> ending_;
};

}  // namespace sallyport::net
