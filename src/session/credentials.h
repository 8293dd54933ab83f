// The credential files of one session: opened and checked here, watched for replacement, and never read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "os/file_watcher.h"

namespace sallyport::session {

class Credentials {
 public:
  // A file was opened (again), or can no longer be: then the descriptor is empty and `problem` says why.
  using OnFile = std::function<void(const std::string& name, Fd file, const std::string& problem)>;

  // `owner`: who must own the files (root may too).
  Credentials(os::FileWatcher& watcher, std::map<std::string, config::CredentialSource> sources, uid_t owner,
              OnFile on_file);
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // What open_all() would not be able to open: the first file's problem.
  Status check() const;
  // Watches the files' folders from now on. Before open_all(), so that no change falls between. Again and
  // again: a folder that is watched already stays so, and one that took its place is watched from now on.
  Status watch();
  // Opens every file and hands it out: at the start, and to a restarted vault.
  void open_all();

 private:
  Result<Fd> open(const std::string& name) const;
  enum class Handing : std::uint8_t { Always, IfChanged };
  void open_one(const std::string& name, Handing handing);
  void on_changes(const os::FileWatcher::Changes& changes);

  std::map<std::string, config::CredentialSource> sources_;
  uid_t owner_;
  OnFile on_file_;
  std::map<std::string, std::string> handed_;  // by name: which file in which state, or the problem
  os::FileWatcher::Group folders_;
};

}  // namespace sallyport::session
