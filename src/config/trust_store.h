// The user's consent to policy files: which bytes at which place. It lies in a folder of its own, outside of
// every workspace; whoever could write it could write permissions, so nothing is read that others could have
// written.
//
// One file an entry, named by the path's SHA-256. The text is kept beside its hash, so that a change can be
// shown.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sallyport::config {

struct Trusted {
  std::string path;  // of the policy file, without links
  std::string sha256;
  std::string text;
};

// A user has that many workspaces at most; past it, some are to be revoked.
inline constexpr std::size_t kMaxTrusted = 4096;

std::string sha256_hex(std::string_view bytes);

class TrustStore {
 public:
  explicit TrustStore(std::string folder) : folder_(std::move(folder)) {}

  // What was trusted at that path last. No folder yet means no entry. A folder or file that is open to
  // others, belongs to somebody else, is a link or was damaged is an error that names it.
  Result<std::optional<Trusted>> find(const std::string& path) const;
  // In the order of their paths; without the texts, which could be gigabytes.
  Result<std::vector<Trusted>> all() const;

  // Makes the folder (0700) when there is none; the file (0600) is there as a whole or not at all.
  Status trust(const std::string& path, std::string_view text) const;
  // Whether there was anything to revoke.
  Result<bool> revoke(const std::string& path) const;

 private:
  std::string folder_;
};

}  // namespace sallyport::config
