// sallyport-init: the first program inside a sandbox. sandbox/bubblewrap.h starts it with the number of its
// control socket; in a container (container/) it is given the path of one, and "hold" when it is there for
// the namespace alone. Under other names it is what git inside finds in place of ssh.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "base/text.h"
#include "os/packet_listener.h"
#include "sandbox/init.h"
#include "sandbox/transport_refusal.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// Looking for leaks needs ptrace, which is refused in a sandbox.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif
#endif

namespace {

constexpr int kMaxFd = 1023;
constexpr int kUsage = 2;

// An engine that stops a container asks its first process, on whom a signal without a handler has no effect.
// It has no number in here, unlike whoever inside would like to end the session.
void end_on_request(int number, siginfo_t* info, void*) {
  if (info->si_pid == 0) ::_exit(128 + number);
}

int run_in_container(int (*role)(int control), std::string_view socket) {
  const auto control = sallyport::os::connect_packets(std::string(socket));
  if (!control) {
    std::fprintf(stderr, "sallyport-init: %s\n", control.error().detail.c_str());
    return 1;
  }
  struct sigaction action{};
  action.sa_sigaction = end_on_request;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  return role(control->get());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv, argv + argc);
  if (argc > 0) {
    if (const auto text =
            sallyport::sandbox::transport_refusal(arguments.front(), std::span(arguments).subspan(1))) {
      std::fputs(text->c_str(), stderr);
      return 1;
    }
  }
  if (argc == 3 && arguments[1] == "connect") {
    return run_in_container(sallyport::sandbox::run_init, arguments[2]);
  }
  if (argc == 3 && arguments[1] == "hold") {
    return run_in_container(sallyport::sandbox::run_holder, arguments[2]);
  }
  const auto control = argc == 2 ? sallyport::parse_decimal(argv[1], kMaxFd) : std::nullopt;
  if (!control || *control < 3) {
    std::fputs("sallyport-init: started by Sallyport inside a sandbox, and of no use elsewhere\n", stderr);
    return kUsage;
  }
  return sallyport::sandbox::run_init(static_cast<int>(*control));
}
