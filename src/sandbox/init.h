// What sallyport-init does: process 1 of a sandbox. It answers the warden's pre-flight, starts the workload,
// carries signals and stops between the two, and reaps whatever else ends.
#pragma once

namespace sallyport::sandbox {

// Serves the warden on `control` until the workload has ended or the warden is gone; the exit code for
// main(): the workload's, as a shell gives it.
int run_init(int control);

// Does nothing until the warden is gone: a container has the namespace for as long as something runs in it.
int run_holder(int control);

}  // namespace sallyport::sandbox
