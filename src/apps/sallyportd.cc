// The warden. Embedded (started by `sallyport run` with its socket as descriptor 3) it serves one session and
// ends.

#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "control/server.h"

namespace {

int serve_embedded() {
  using namespace sallyport;
  os::EventLoop loop;
  control::Server server(loop, Fd(control::kEmbeddedSocketFd));
  if (auto status = server.serve(); !status) {
    std::fprintf(stderr, "sallyportd: %s\n", status.error().detail.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::string_view(argv[1]) != "--embedded") {
    std::fprintf(stderr, "sallyportd is started by `sallyport run`; there is nothing to start by hand yet\n");
    return 2;
  }
  // The canary in our environment and the grant are nobody else's business; and a broken pipe is an error,
  // not a death.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return serve_embedded();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sallyportd: this is a bug: %s\n", error.what());
    return 1;
  }
}
