// What sallyport-netns does, and the words it speaks with NamespaceBuilder (netns.h).
//
// Over one SOCK_SEQPACKET socket, each packet lines of text:
//   helper:  "namespaces" [" nflog"]    with user, net, link_query, link_watch and, if said, nflog
//   descriptors caller:  "open redirect RATE BURST" (of new connections in a second; 0 0: unlimited) or
//   "open direct" helper:  "doors redirect" or "doors direct REASON",
//   then a line "tcp|udp 4|6 PORT" for each descriptor
// or, instead of either answer:  "failed TEXT". Then the helper exits.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::os {

// The descriptor on which the helper finds its control socket.
inline constexpr int kHelperControlFd = 3;
// Its arguments, each with the descriptor of the namespace that is entered instead of making one.
inline constexpr std::string_view kJoinNet = "join-net";
inline constexpr int kJoinNetFd = 4;
inline constexpr std::string_view kJoinUser = "join-user";
inline constexpr int kJoinUserFd = 5;

// Serves one caller, and returns when both phases are done. What fails is told to the caller and returned.
Status serve_namespace_helper(int control, const std::vector<std::string_view>& arguments);

}  // namespace sallyport::os
