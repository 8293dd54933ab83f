// Whose the socket at the other end of a connection within this host is: the kernel knows (sock_diag(7)).
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

// The socket for such questions, of the current network namespace, non-blocking. Another process may ask on
// it too, one that could not open it itself.
Result<Fd> open_socket_diagnosis();

// Of the process that made the socket to which `connection`, accepted on this host, is connected.
// ClientClosed when that socket is closed already: of such a one the kernel does not say whose it was.
Result<uid_t> peer_owner(int diagnosis, int connection);

// Whether the kernel answers at all, tried on a connection of our own. The error says what it lacks.
Status check_socket_diagnosis(int diagnosis);

}  // namespace sallyport::os
