// `sallyport doctor`: tries what a sandbox needs, layer by layer, and says what to do. Returns the exit code:
// kExitOk when `sallyport run` would work here.
#pragma once

#include "cli/command_line.h"

namespace sallyport::cli {

int doctor(const DoctorOptions& options);

}  // namespace sallyport::cli
