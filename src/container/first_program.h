// That a container's first process is our sallyport-init from its first instruction on, whatever the image
// made of the paths. An image may have a link at its place and a volume with a program of its own where that
// leads: such a program would answer the pre-flight as it likes.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace sallyport::container {

// `mountinfo` of /proc: the program was started by its path, so nothing but its own mount may lie there. With
// the root folder read-only, and no right to mount anything, that cannot have been otherwise before.
Status check_program_mount(std::string_view mountinfo);

// And what runs is `program`, a path on the host. The process is one that is known to live.
Status check_first_program(pid_t pid, const std::string& program);

}  // namespace sallyport::container
