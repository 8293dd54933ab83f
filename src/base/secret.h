// A credential in memory: locked, left out of core dumps, zeroed when it goes. It has no formatter, no stream
// operator and no conversion to a string, so that it cannot be logged by accident; expose() is the one way to
// its bytes.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace sallyport {

class Secret {
 public:
  static constexpr std::size_t kMaxBytes = 16 * 1024;

  // Room for `capacity` bytes, empty. Fails when the memory cannot be had or locked (RLIMIT_MEMLOCK), or when
  // capacity is over kMaxBytes.
  static Result<Secret> with_capacity(std::size_t capacity);

  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();

  // Adds bytes; false, and nothing added, when they do not fit.
  [[nodiscard]] bool append(std::string_view bytes);
  // For read(2) straight into locked memory: the free room, then how much of it was filled.
  char* free_room() { return data_ + size_; }
  std::size_t free_bytes() const { return capacity_ - size_; }
  void grew(std::size_t bytes);
  // Zeroes what lies behind the first `size` bytes.
  void truncate(std::size_t size);

  bool empty() const { return size_ == 0; }
  // Valid while this lives and is not changed. Copying it elsewhere is the caller's mistake.
  std::string_view expose() const { return {data_, size_}; }

 private:
  Secret(char* data, std::size_t capacity, std::size_t mapped)
      : data_(data), capacity_(capacity), mapped_(mapped) {}
  void wipe() noexcept;

  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::size_t mapped_ = 0;  // whole pages: what was mapped and locked
};

}  // namespace sallyport
