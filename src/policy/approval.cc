#include "policy/approval.h"

namespace sallyport::policy {

bool approves(const Approval& approval, const GitRule& rule) {
  const bool access = approval.access == Access::Push || rule.access == Access::Fetch;
  return access && approval.credential == rule.credential && approval.repo.covers(rule.repo);
}

}  // namespace sallyport::policy
