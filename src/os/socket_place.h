// Where a Unix socket lies that only some may reach: its folder, opened without following a link, and proved
// to be nobody else's to change. What is then done by the folder's descriptor cannot be led elsewhere.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

// sun_path, without its NUL: whoever connects by the plain path has to fit it in.
inline constexpr std::size_t kMaxSocketPathBytes = 107;

struct SocketPlace {
  Fd folder;  // O_PATH
  std::string name;
  std::string path;    // for messages
  uid_t folder_owner;  // root or `trusted`
  mode_t folder_mode;

  // For bind(2), connect(2) and what else takes only a path.
  std::string by_descriptor() const;
};

enum class MissingFolder { Fail, Make };

// `path` is absolute and plain (no "..", no doubled slash). Every folder on it belongs to root or to
// `trusted`, and is no symbolic link; the last two can be written by their owner alone, those above also by
// others where they are sticky. Make: a missing last folder is made, 0700. UpstreamUnreachable: a folder is
// not there.
Result<SocketPlace> open_socket_place(const std::string& path, uid_t trusted, MissingFolder missing);

}  // namespace sallyport::os
