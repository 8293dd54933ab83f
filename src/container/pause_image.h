// The image of the container that holds a sandbox's network namespace: sallyport-init, and nothing else.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::container {

inline constexpr char kPauseRepository[] = "sallyport/pause";
// Where the program is in it.
inline constexpr char kPauseProgram[] = "/sallyport-init";
// A static program is a few MiB; the one of a build with sanitizers is larger, and cannot run there anyway.
inline constexpr std::size_t kMaxProgramBytes = 64 * 1024 * 1024;

struct PauseImage {
  Fd tar;           // a memory file, at its beginning
  std::string tag;  // changes with the program
};

// `program`: the path of sallyport-init, which must be linked statically.
Result<PauseImage> make_pause_image(const std::string& program);

}  // namespace sallyport::container
