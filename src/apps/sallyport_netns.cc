// sallyport-netns: makes a sandbox's namespaces, opens the doors in them, sends both to the warden, and ends.
// Started by os/netns.h only; it has no command line.

#include <cstdio>

#include "os/netns_helper.h"

int main() {
  const auto served = sallyport::os::serve_namespace_helper(sallyport::os::kHelperControlFd);
  if (served) return 0;
  std::fprintf(stderr, "sallyport-netns: %s\n", served.error().detail.c_str());
  return 1;
}
