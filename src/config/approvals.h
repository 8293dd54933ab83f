// [[approve]] of the operator's file: what a workspace's policy may do with a credential without consent.
#pragma once

#include <vector>

#include "config/config.h"
#include "config/toml_document.h"

namespace sallyport::config {

// Into `config`, whose credentials and hosts are read already.
void read_approvals(const Value& approvals, OperatorConfig& config, Problems& problems);

// The rules that use a credential and lie within no approval.
std::vector<policy::GitRule> unapproved_rules(const PolicyFile& policy, const OperatorConfig& config);

}  // namespace sallyport::config
