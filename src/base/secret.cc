#include "base/secret.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace sallyport {

Result<Secret> Secret::with_capacity(std::size_t capacity) {
  if (capacity == 0 || capacity > kMaxBytes) {
    return fail(Reason::Internal, "a secret of that size is not supported");
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (capacity + page - 1) / page * page;
  void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_errno(Reason::Internal, "memory for a secret");
  if (::mlock(memory, mapped) != 0 || ::madvise(memory, mapped, MADV_DONTDUMP) != 0 ||
      ::madvise(memory, mapped, MADV_WIPEONFORK) != 0) {
    auto error = fail_errno(Reason::Internal, "locking memory for a secret (see ulimit -l)");
    ::munmap(memory, mapped);
    return error;
  }
  return Secret(static_cast<char*>(memory), capacity, mapped);
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    mapped_ = std::exchange(other.mapped_, 0);
  }
  return *this;
}

Secret::~Secret() {
  wipe();
}

void Secret::wipe() noexcept {
  if (data_ == nullptr) return;
  ::explicit_bzero(data_, mapped_);
  ::munmap(data_, mapped_);
  data_ = nullptr;
}

bool Secret::append(std::string_view bytes) {
  if (bytes.size() > free_bytes()) return false;
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
  return true;
}

void Secret::grew(std::size_t bytes) {
  if (bytes > free_bytes()) std::abort();
  size_ += bytes;
}

void Secret::truncate(std::size_t size) {
  if (size >= size_) return;
  ::explicit_bzero(data_ + size, size_ - size);
  size_ = size;
}

}  // namespace sallyport
