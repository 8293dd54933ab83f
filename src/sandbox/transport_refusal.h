// What stands inside a sandbox where git looks for ssh, and for the program behind git://. Both only say why
// there is no such way out and what to do instead: URLs of granted hosts never come here, since git turns
// them into https by the rewrites of /etc/gitconfig (profile.h).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sallyport::sandbox {

// The names, as links to sallyport-init, under which git finds them.
inline constexpr char kSshPath[] = "/run/sallyport/ssh";             // GIT_SSH_COMMAND
inline constexpr char kGitProxyPath[] = "/run/sallyport/git-proxy";  // GIT_PROXY_COMMAND

// The lines for standard error when the program was started under one of these names; nullopt under any
// other. The arguments come from a URL that a repository may have chosen: every byte of them is hostile.
std::optional<std::string> transport_refusal(std::string_view program,
                                             std::span<const std::string_view> arguments);

}  // namespace sallyport::sandbox
