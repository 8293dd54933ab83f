#include "vault/source.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace sallyport::vault {
namespace {

std::unexpected<Error> unavailable(std::string detail) {
  return fail(Reason::CredentialUnavailable, std::move(detail));
}

// Everything, straight into locked memory.
Status fill(int file, Secret& secret) {
  for (off_t offset = 0; secret.free_bytes() > 0;) {
    const ssize_t got = ::pread(file, secret.free_room(), secret.free_bytes(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(Reason::CredentialUnavailable, "read the credential file");
    if (got == 0) return {};
    secret.grew(static_cast<std::size_t>(got));
    offset += got;
  }
  return {};
}

}  // namespace

Result<Secret> read_credential(const Fd& file) {
  // Not fstat(): glibc's asks by an empty name, and confinement knows no names of files any more.
  struct stat about{};
  if (::syscall(SYS_fstat, file.get(), &about) != 0) {
    return fail_errno(Reason::CredentialUnavailable, "fstat of the credential file");
  }
  if (!S_ISREG(about.st_mode)) return unavailable("the credential's source is not a regular file");

  // Room for the newline and for one byte more, which tells that the file is too long.
  auto secret = Secret::with_capacity(kMaxCredentialBytes + 2);
  if (!secret) return unavailable(secret.error().detail);
  if (auto filled = fill(file.get(), *secret); !filled) return fail(std::move(filled));

  if (secret->expose().ends_with('\n')) secret->truncate(secret->expose().size() - 1);
  const std::string_view token = secret->expose();
  if (token.empty()) return unavailable("the credential file is empty");
  if (token.find('\n') != std::string_view::npos) {
    return unavailable("the credential file holds more than one line");
  }
  if (token.size() > kMaxCredentialBytes) return unavailable("the credential is longer than 4096 bytes");
  if (!std::ranges::all_of(token, is_visible)) {
    return unavailable(
        "the credential holds a character that is not printable ASCII (a space, a carriage return?)");
  }
  return secret;
}

}  // namespace sallyport::vault
