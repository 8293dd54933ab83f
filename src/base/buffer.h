// Room for bytes that are about to be read. Unlike a string or a vector it is not filled first, which takes
// longer than reading a short message.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace sallyport {

class Buffer {
 public:
  explicit Buffer(std::size_t size) : bytes_(std::make_unique_for_overwrite<char[]>(size)), size_(size) {}

  std::span<char> all() { return {bytes_.get(), size_}; }
  // Of what has been written into it.
  std::string_view first(std::size_t count) const { return {bytes_.get(), count}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

}  // namespace sallyport
