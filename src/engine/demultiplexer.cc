#include "engine/demultiplexer.h"

#include <algorithm>

namespace sallyport::engine {

Status Demultiplexer::feed(std::string_view bytes, const OnPiece& on_piece) {
  while (!bytes.empty()) {
    if (left_ > 0) {
      const std::string_view piece = bytes.substr(0, left_);
      bytes.remove_prefix(piece.size());
      left_ -= piece.size();
      on_piece(output_, piece);
      continue;
    }
    const std::size_t more = std::min(head_.size() - head_bytes_, bytes.size());
    std::copy_n(bytes.begin(), more, head_.begin() + static_cast<std::ptrdiff_t>(head_bytes_));
    bytes.remove_prefix(more);
    head_bytes_ += more;
    if (head_bytes_ < head_.size()) break;
    if (auto status = begin_frame(); !status) return status;
  }
  return {};
}

Status Demultiplexer::begin_frame() {
  constexpr char kStandardOutput = 1;
  constexpr char kStandardError = 2;
  const bool known = head_[0] == kStandardOutput || head_[0] == kStandardError;
  if (!known || head_[1] != 0 || head_[2] != 0 || head_[3] != 0) {
    return fail(Reason::EngineRefused, "a container's output is not in the engine's frames");
  }
  output_ = head_[0] == kStandardError ? Output::Error : Output::Standard;
  for (std::size_t i = 4; i < head_.size(); ++i) left_ = left_ << 8 | static_cast<std::uint8_t>(head_[i]);
  head_bytes_ = 0;
  return {};
}

}  // namespace sallyport::engine
