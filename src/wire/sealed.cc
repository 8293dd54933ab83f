#include "wire/sealed.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace sallyport::wire {
namespace {

constexpr int kAllSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

Result<Fd> to_memfd(std::string_view bytes) {
  Fd memfd(::memfd_create("sallyport", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd) return fail_errno(Reason::Internal, "memfd_create");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        ::pwrite(memfd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail_errno(Reason::Internal, "write to a memfd");
    done += static_cast<std::size_t>(written);
  }
  if (::fcntl(memfd.get(), F_ADD_SEALS, kAllSeals) != 0) return fail_errno(Reason::Internal, "seal a memfd");
  return memfd;
}

Result<std::string> read_memfd(const Fd& memfd, std::size_t max_bytes) {
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0) return fail_errno(Reason::Internal, "seals of a descriptor");
  if ((seals & kAllSeals) != kAllSeals) return fail(Reason::Internal, "the descriptor is not sealed");
  // Not fstat(), which may become a call that finds files: confinement forbids those.
  const off_t end = ::lseek(memfd.get(), 0, SEEK_END);
  if (end < 0) return fail_errno(Reason::Internal, "the size of a memfd");
  const auto size = static_cast<std::size_t>(end);
  if (size > max_bytes) return fail(Reason::Internal, "the sealed memory is larger than allowed");

  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = ::pread(memfd.get(), bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail_errno(Reason::Internal, "read of a memfd");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace sallyport::wire
