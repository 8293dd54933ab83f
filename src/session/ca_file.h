// The file of authorities that clients of `sallyport serve` are told to trust. It is there whole or not at
// all, and as long as this lives.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::session {

class CaFile {
 public:
  // Writes it beside `path`, an absolute one, and puts it in its place at once, for all to read. Only a file
  // of ours is replaced: a symbolic link, a folder and what is another user's are refused, with a sentence.
  static Result<CaFile> write(const std::string& path, std::string_view bundle);
  CaFile(CaFile&& other) noexcept = default;
  CaFile& operator=(CaFile&& other) = delete;
  // Removes it, if it is still the one that was written.
  ~CaFile();

 private:
  CaFile(Fd folder, std::string name, dev_t device, ino_t inode);

  Fd folder_;
  std::string name_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace sallyport::session
