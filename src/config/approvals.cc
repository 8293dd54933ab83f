#include "config/approvals.h"

#include <algorithm>
#include <utility>

#include "config/reading.h"
#include "config/table_reader.h"

namespace sallyport::config {
namespace {

// The approval's credential, which must be defined: a misspelt one would approve nothing.
const Value* read_credential(TableReader& table, const OperatorConfig& config, Problems& problems) {
  const Value* value =
      table.require("credential", Value::Kind::String, "add credential = \"NAME\": only its use is approved");
  if (value == nullptr) return nullptr;
  if (!is_credential_name(value->text)) {
    problems.push_back(bad_credential_name(value->place));
    return nullptr;
  }
  if (!config.credentials.contains(value->text)) {
    problems.push_back({value->place, "no credential is named '" + value->text + "'",
                        "add [credential." + value->text + "] to this file"});
  }
  return value;
}

void read_approval(const Value& item, OperatorConfig& config, Problems& problems) {
  TableReader table(item, "[[approve]]", problems);
  auto repo = read_repo(table, config, problems);
  const auto access = read_access(table, problems);
  const Value* credential = read_credential(table, config, problems);
  table.finish();
  if (repo && access && credential != nullptr) {
    config.approvals.push_back({*std::move(repo), *access, credential->text});
  }
}

}  // namespace

void read_approvals(const Value& approvals, OperatorConfig& config, Problems& problems) {
  if (approvals.items.size() > kMaxApprovals) {
    problems.push_back({approvals.items[kMaxApprovals].place,
                        "the file has more than " + std::to_string(kMaxApprovals) + " approvals",
                        "use wildcards"});
    return;
  }
  for (const Value& item : approvals.items) {
    if (item.kind == Value::Kind::Table) {
      read_approval(item, config, problems);
    } else {
      problems.push_back({item.place, "an approval must be a table, not " + std::string(name(item.kind)),
                          "write [[approve]] above its keys"});
    }
  }
}

std::vector<policy::GitRule> unapproved_rules(const PolicyFile& policy, const OperatorConfig& config) {
  std::vector<policy::GitRule> rules;
  for (const policy::GitRule& rule : policy.git) {
    const auto covers = [&](const policy::Approval& approval) { return policy::approves(approval, rule); };
    if (!rule.credential.empty() && std::ranges::none_of(config.approvals, covers)) rules.push_back(rule);
  }
  return rules;
}

}  // namespace sallyport::config
