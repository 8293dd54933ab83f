// Doing something by another user's rights: what a user names must be opened as that user. A daemon that is
// root would find, read and change whatever the user cannot, through links, renames and lies.
#pragma once

#include <linux/capability.h>

#include <array>
#include <cstdint>
#include <optional>

#include "os/process.h"

namespace sallyport::os {

// As long as it lives, the calling thread (root's) has the file access of `user`, and no capability but that
// to end children which became the user. For other processes it stays root's: the user can neither signal nor
// trace it, nor take the processor from it. Children that are started meanwhile: see SpawnSpec::become.
class ActAs {
 public:
  // nullopt changes nothing, nor does the same user once more. Throws when it cannot be done, and then
  // nothing has changed; also while another user is acted as, and for uid 0, which would lose nothing.
  explicit ActAs(const std::optional<Ids>& user);
  // Whoever cannot become himself again goes no further: aborts.
  ~ActAs();
  ActAs(const ActAs&) = delete;
  ActAs& operator=(const ActAs&) = delete;

  using Capabilities = std::array<std::uint32_t, _LINUX_CAPABILITY_U32S_3>;
  struct Before {
    Ids ids;
    Capabilities effective;
  };

 private:
  std::optional<Before> before_;
};

// Whom the calling thread acts as; nullopt: as itself.
std::optional<Ids> acting_as();

// By whose rights it opens files: the effective uid's, or whom it acts as.
uid_t file_uid();

// For a child of a thread that acts as somebody, before it becomes whom it shall be: has all rights again
// that are its own. Safe between fork and exec. False when it could not.
bool take_rights_back();

}  // namespace sallyport::os
