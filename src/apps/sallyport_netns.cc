// sallyport-netns: makes a sandbox's namespaces, opens the doors in them, sends both to the warden, and ends.
// Started by os/netns.h, whose arguments say which namespaces it joins, and by os/mount_over.h.

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "os/mount_over.h"
#include "os/netns_helper.h"

int main(int argc, char** argv) {
  using sallyport::os::kHelperControlFd;
  if (argc > 1 && std::string_view(argv[1]) == sallyport::os::kMountOver) {
    return sallyport::os::serve_mount_over(kHelperControlFd, {argv + 1, argv + argc}) ? 0 : 1;
  }
  const auto served =
      sallyport::os::serve_namespace_helper(kHelperControlFd, {argv + std::min(argc, 1), argv + argc});
  if (served) return 0;
  std::fprintf(stderr, "sallyport-netns: %s\n", served.error().detail.c_str());
  return 1;
}
