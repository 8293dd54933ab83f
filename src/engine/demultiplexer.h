// Output of a container without a terminal comes as frames of standard output and standard error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace sallyport::engine {

class Demultiplexer {
 public:
  enum class Output { Standard, Error };
  using OnPiece = std::function<void(Output, std::string_view)>;

  // The next bytes; pieces are told as they come, a frame may be several. After an error it is of no more
  // use.
  Status feed(std::string_view bytes, const OnPiece& on_piece);
  // Whether the bytes may end here.
  bool between_frames() const { return head_bytes_ == 0 && left_ == 0; }

 private:
  Status begin_frame();

  std::array<char, 8> head_{};  // kind, three zeros, length in network order
  std::size_t head_bytes_ = 0;
  std::size_t left_ = 0;  // of the frame's bytes
  Output output_ = Output::Standard;
};

}  // namespace sallyport::engine
