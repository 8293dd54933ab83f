// sallyport-init: the first program inside a sandbox. Started by sandbox/bubblewrap.h only, with the number
// of its control socket. Under other names it is what git inside finds in place of ssh.

#include <cstdio>
#include <vector>

#include "base/text.h"
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

int main(int argc, char** argv) {
  constexpr int kMaxFd = 1023;
  const std::vector<std::string_view> arguments(argv, argv + argc);
  if (argc > 0) {
    if (const auto text =
            sallyport::sandbox::transport_refusal(arguments.front(), std::span(arguments).subspan(1))) {
      std::fputs(text->c_str(), stderr);
      return 1;
    }
  }
  const auto control = argc == 2 ? sallyport::parse_decimal(argv[1], kMaxFd) : std::nullopt;
  if (!control || *control < 3) {
    std::fputs("sallyport-init: started by Sallyport inside a sandbox, and of no use elsewhere\n", stderr);
    return 2;
  }
  return sallyport::sandbox::run_init(static_cast<int>(*control));
}
