// How values become bytes between our processes: fixed-width big-endian numbers and length-prefixed strings.
// The reader never trusts a length: a message that does not parse to its last byte is refused whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace sallyport::wire {

class Writer {
 public:
  Writer& u8(std::uint8_t value);
  Writer& flag(bool value) { return u8(value ? 1 : 0); }
  Writer& u16(std::uint16_t value);
  Writer& u32(std::uint32_t value);
  Writer& u64(std::uint64_t value);
  Writer& string(std::string_view value);  // u32 length, bytes
  template <class Enum>
  Writer& enumerator(Enum value) {
    return u8(static_cast<std::uint8_t>(std::to_underlying(value)));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first failure every read gives zero or "" and ok() stays false, so that a decoder reads straight
// through and asks once at the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::uint64_t u64();
  bool flag();  // one byte, 0 or 1
  std::string string(std::size_t max_bytes);
  // A count of elements to follow, at most `max`.
  std::uint32_t count(std::uint32_t max);
  // One byte, at most `last`: for enums whose values count up from 0.
  template <class Enum>
  Enum enumerator(Enum last) {
    const std::uint8_t value = u8();
    if (value > std::to_underlying(last)) refuse();
    return ok_ ? static_cast<Enum>(value) : Enum{};
  }
  void refuse() { ok_ = false; }

  bool ok() const { return ok_; }
  // Everything was read, and nothing was wrong.
  bool finished() const { return ok_ && rest_.empty(); }

 private:
  std::uint64_t number(std::size_t bytes);
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace sallyport::wire
