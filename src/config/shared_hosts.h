// Hosts that are more than they look: names below which anybody can have one, and resolvers that answer DNS
// over HTTPS. A rule that names them needs to say that it is meant.
#pragma once

#include <span>
#include <string_view>

#include "policy/host_pattern.h"

namespace sallyport::config {

// A wildcard at a public suffix or above one: whoever registers a name there is let in. By the Public Suffix
// List with its private section as libpsl has it built in (the same on every machine with that libpsl,
// whatever files lie about), and a list of our own of what that lacks.
bool is_shared(const policy::HostPattern& host);

// A resolver's name that the pattern matches, is, or is below; "" when there is none.
std::string_view doh_host(const policy::HostPattern& host);

// Both lists, for the page that names them.
std::span<const std::string_view> shared_names();
std::span<const std::string_view> doh_names();

}  // namespace sallyport::config
