// How a token is presented to a git host. The text is built in locked memory: no copy of the token is made
// anywhere else.
#pragma once

#include "base/secret.h"
#include "policy/repo.h"

namespace sallyport::vault {

// "Authorization: Basic base64(USER:TOKEN)" without CRLF; the user name is the host kind's.
Result<Secret> basic_authorization(policy::HostKind kind, const Secret& token);

}  // namespace sallyport::vault
