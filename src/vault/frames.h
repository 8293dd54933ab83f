// A lane's socket as frames: either side reads and writes with this.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/stream.h"
#include "vault/lane.h"

namespace sallyport::vault {

class Frames {
 public:
  explicit Frames(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}

  // The next frame's header; nullopt at the peer's end between two frames. Holds no buffer while it waits.
  net::Task<Result<std::optional<FrameHeader>>> read_header();
  // A payload, or a part of one, to its last byte.
  net::Task<Status> read_exactly(std::span<char> into);
  // A whole payload that is small.
  net::Task<Result<std::string>> read_payload(std::size_t bytes);

  // At most kMaxPayloadBytes.
  net::Task<Status> write(FrameType type, std::string_view payload);

  net::Stream& stream() { return *stream_; }

 private:
  std::unique_ptr<net::Stream> stream_;
};

}  // namespace sallyport::vault
