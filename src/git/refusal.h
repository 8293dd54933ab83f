// Answers of our own in the shapes that git reads, so that the user sees the reason and not only a number.
// Found by experiment with stock git; docs/git-protocol.md has the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "git/push.h"
#include "policy/git_route.h"

namespace sallyport::git {

// "application/x-git-upload-pack-request", "...-result", "...-advertisement".
std::string request_type(policy::GitService service);
std::string result_type(policy::GitService service);
std::string advertisement_type(policy::GitService service);

// The body of a 200 to git-upload-pack that says no: git prints "fatal: remote error: <text>".
std::string fetch_refusal(std::string_view text);

// The body of a 200 to git-receive-pack that says no to every ref: git prints each line of `text` as
// "remote: ..." and "! [remote rejected] src -> dst (<why>)". `why` is one line. nullopt when the client
// asked for no report: it can only be told by the HTTP status.
std::optional<std::string> push_refusal(const PushCommands& push, std::string_view text,
                                        std::string_view why);

// git-lfs shows the message of this JSON, and nothing of any other body.
inline constexpr std::string_view kLfsType = "application/vnd.git-lfs+json";
std::string lfs_refusal(std::string_view sentence, std::string_view request_id);

}  // namespace sallyport::git
