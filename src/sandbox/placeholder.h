// An empty file or folder that is put where nothing was, so that something can be mounted over it: what is
// not there cannot be guarded by a mount. It goes away again at the end.
//
// It is known by its time of change, a fixed second, and by being empty. So a killed warden's are found and
// taken over by the next run; runs at the same time share one (a shared flock), and the last takes it away.
#pragma once

#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "os/process.h"

namespace sallyport::sandbox {

class Placeholder {
 public:
  enum class Kind { File, Folder };

  // nullopt: something else is there, or the folder cannot be written to. `folder` (O_PATH will do) and
  // `name` are kept. Made by the rights of `client`, whom we act as already, and taken away by them; without
  // one root makes it by those of the folder's owner, to whom it then belongs.
  static std::optional<Placeholder> make(int folder, const std::string& name, Kind kind,
                                         const std::optional<os::Ids>& client = {});

  Placeholder(Placeholder&&) noexcept = default;
  Placeholder& operator=(Placeholder&&) = delete;
  ~Placeholder();

  int fd() const { return opened_.get(); }
  // Nobody held it, and it was there: a run ended without its clean-up.
  bool was_left_behind() const { return left_behind_; }

 private:
  Placeholder() = default;

  std::optional<os::Ids> client_;
  Fd folder_;
  Fd opened_;
  std::string name_;
  Kind kind_ = Kind::File;
  bool left_behind_ = false;
};

}  // namespace sallyport::sandbox
