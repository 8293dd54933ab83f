// For tests: a piece of code in a child process, by default inside a sandbox's namespaces.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/fd.h"
#include "os/netns.h"
#include "os/spawn.h"

namespace sallyport::os::testing {

// Root's tests take this uid before they make or enter a namespace; others have their own.
inline constexpr Ids kTestIds{12345, 12345};
std::optional<Ids> test_ids();
// Becomes `ids` when root, and what a program started by such a user would be (dumpable). Says what failed.
std::string become_user(const Ids& ids);

// Runs in the child and says what was wrong: empty is success.
using Body = std::function<std::string()>;

class Forked {
 public:
  explicit Forked(const Body& body);
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;
  ~Forked();
  // Waits for the end; what the body returned, or how the child died.
  std::string finish();

 private:
  pid_t pid_ = -1;
  Fd report_;
};

// Sockets and addresses, shortly.
Endpoint at(const char* address, std::uint16_t port);
Fd open_socket(const Endpoint& near, int type, int protocol = 0);
// 0, or errno.
int connect_to(int socket, const Endpoint& where);
int bind_to(int socket, const Endpoint& where);

// `body` after becoming test_ids() and entering both namespaces: with every capability over them.
Body inside(const Namespace& space, Body body);

}  // namespace sallyport::os::testing
