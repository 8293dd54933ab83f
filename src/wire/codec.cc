#include "wire/codec.h"

#include <utility>

namespace sallyport::wire {
namespace {

void put(std::string& bytes, std::uint64_t value, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) bytes += static_cast<char>(value >> (8U * i) & 0xffU);
}

}  // namespace

Writer& Writer::u8(std::uint8_t value) {
  put(bytes_, value, 1);
  return *this;
}

Writer& Writer::u16(std::uint16_t value) {
  put(bytes_, value, 2);
  return *this;
}

Writer& Writer::u32(std::uint32_t value) {
  put(bytes_, value, 4);
  return *this;
}

Writer& Writer::u64(std::uint64_t value) {
  put(bytes_, value, 8);
  return *this;
}

Writer& Writer::string(std::string_view value) {
  put(bytes_, value.size(), 4);
  bytes_ += value;
  return *this;
}

std::uint64_t Reader::number(std::size_t bytes) {
  if (!ok_ || rest_.size() < bytes) {
    ok_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (const char c : rest_.substr(0, bytes)) value = value << 8U | static_cast<unsigned char>(c);
  rest_.remove_prefix(bytes);
  return value;
}

std::uint8_t Reader::u8() {
  return static_cast<std::uint8_t>(number(1));
}

std::uint16_t Reader::u16() {
  return static_cast<std::uint16_t>(number(2));
}

std::uint32_t Reader::u32() {
  return static_cast<std::uint32_t>(number(4));
}

std::uint64_t Reader::u64() {
  return number(8);
}

bool Reader::flag() {
  const std::uint8_t value = u8();
  if (value > 1) ok_ = false;
  return value == 1;
}

std::string Reader::string(std::size_t max_bytes) {
  const std::uint32_t size = u32();
  if (!ok_ || size > max_bytes || size > rest_.size()) {
    ok_ = false;
    return {};
  }
  std::string value(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return value;
}

std::uint32_t Reader::count(std::uint32_t max) {
  const std::uint32_t value = u32();
  // Each element has at least one byte, so a count beyond the rest is a lie that would only cost memory.
  if (!ok_ || value > max || value > rest_.size()) {
    ok_ = false;
    return 0;
  }
  return value;
}

}  // namespace sallyport::wire
