#include "os/reset.h"

#include <sys/socket.h>

namespace sallyport::os {

void reset_on_close(int connection) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  // A connection that is gone needs no reset.
  static_cast<void>(::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
}

void reset_on_close(const Fd& connection) {
  reset_on_close(connection.get());
}

}  // namespace sallyport::os
