// The credential files of one session: opened and checked here, watched for replacement, and never read.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "config/config.h"
#include "os/event_loop.h"

namespace sallyport::session {

class Credentials {
 public:
  // A file was opened (again), or can no longer be: then the descriptor is empty and `problem` says why.
  using OnFile = std::function<void(const std::string& name, Fd file, const std::string& problem)>;

  // `owner`: who must own the files (root may too).
  Credentials(os::EventLoop& loop, std::map<std::string, config::CredentialSource> sources, uid_t owner,
              OnFile on_file);
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // What open_all() would not be able to open: the first file's problem.
  Status check() const;
  // Starts watching the files' folders. Before open_all(), so that no change falls between.
  Status watch();
  // Opens every file and hands it out: at the start, and to a restarted vault.
  void open_all();

 private:
  Result<Fd> open(const std::string& name) const;
  void open_one(const std::string& name);
  Status watch_folders();
  void on_folder_event();

  os::EventLoop& loop_;
  std::map<std::string, config::CredentialSource> sources_;
  uid_t owner_;
  OnFile on_file_;
  Fd inotify_;
};

}  // namespace sallyport::session
