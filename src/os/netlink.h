// Requests to the kernel's routing tables: raise lo, add an address, add a route. Works on the namespace in
// which the socket was opened.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"
#include "os/endpoint.h"

struct nlmsghdr;

namespace sallyport::os {

// Sends one request with NLM_F_ACK and returns the kernel's verdict. `what` names it in errors.
Status netlink_request(int socket, nlmsghdr* request, const char* what);

Status raise_loopback(int route_socket);
// Takes 127.0.0.1 away too, whose routes would stay else, so that sending "works". Raising gives it back.
Status lower_loopback(int route_socket);
Status lower_link(int route_socket, int index);
// `address` with the full prefix on lo.
Status add_loopback_address(int route_socket, const Endpoint& address);
// AnyIP: everything of that family is local, and arrives on lo.
Status route_everything_to_loopback(int route_socket, sa_family_t family);

}  // namespace sallyport::os
