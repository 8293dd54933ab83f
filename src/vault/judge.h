// The vault's own judgement of a request that a gate sent: the same grammar and the same decide() as the
// gate's, on the vault's own copy of the grant. Pure.
#pragma once

#include <string>
#include <string_view>

#include "policy/grant.h"
#include "upstream/exchange.h"
#include "vault/lane.h"

namespace sallyport::vault {

struct Judged {
  upstream::Request request;
  std::string credential;  // the deciding rule's; never empty
};

// VaultRefused, with the particulars, for another session, a host, port, repository or method that the grant
// does not allow, another rule than the one that the gate named, a rule without a credential, or an
// advertisement with a body.
Result<Judged> judge(const RequestHead& head, std::string_view session, const policy::Grant& grant);

}  // namespace sallyport::vault
