// The files of one session that its containers see: sockets for sallyport-init, git's configuration, the
// authorities. No secret is among them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "container/specs.h"
#include "sandbox/profile.h"

namespace sallyport::container {

class SessionFolder {
 public:
  // Below `parent`, which nobody else can reach.
  static Result<SessionFolder> make(const std::string& parent, const std::string& session);
  SessionFolder(SessionFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  SessionFolder& operator=(SessionFolder&&) = delete;
  // It goes with all that is in it.
  ~SessionFolder();

  const std::string& path() const { return path_; }
  Result<std::vector<PlacedFile>> write(const std::vector<sandbox::GeneratedFile>& files) const;

 private:
  explicit SessionFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace sallyport::container
