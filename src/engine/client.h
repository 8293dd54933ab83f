// The client of a container engine's HTTP API (Docker's, or Podman's that looks like it) over its Unix
// socket. Nothing here blocks, except that a file to be sent is read from the disk.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "engine/engine_info.h"
#include "engine/exchange.h"
#include "engine/pending.h"
#include "os/event_loop.h"

namespace sallyport::engine {

// Requests under way at once; others wait for their turn, while their time runs.
inline constexpr std::size_t kMaxRequests = 64;
// Requests that wait for their turn.
inline constexpr std::size_t kMaxQueuedRequests = 4096;
// Streams, and requests without a time limit, at once: they have no turns.
inline constexpr std::size_t kMaxStreams = 4096;

class Client {
 public:
  Client(os::EventLoop& loop, std::string socket_path);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // First. Finds the version of the API that both sides speak, which all that follows is asked in.
  [[nodiscard]] Call negotiate(On<EngineInfo> on_info);

  // An answer of any status; an error only when there is none.
  [[nodiscard]] Call request(Request request, On<Answer> on_answer);
  // For as long as the engine sends.
  [[nodiscard]] Call stream(Request request, Listener listener);
  // Attach and exec: the answer is the connection itself.
  [[nodiscard]] Call raw(Request request, On<RawStream> on_stream);

  os::EventLoop& loop() { return loop_; }
  const std::string& socket_path() const { return socket_path_; }

 private:
  Call start(Request request, BodyKind kind, Exchange::OnEnd on_end, Exchange::OnPiece on_piece);
  void enqueue(Exchange& exchange);
  void release_turn();

  os::EventLoop& loop_;
  const std::string socket_path_;
  std::string api_;  // "/v1.41"
  std::size_t running_ = 0;
  std::size_t streams_ = 0;
  std::deque<Exchange*> waiting_;

  friend class Negotiation;
};

}  // namespace sallyport::engine
