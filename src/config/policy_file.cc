// sallyport.toml: what the sandboxes of a workspace may do.
#include <algorithm>
#include <optional>
#include <utility>

#include "config/config.h"
#include "config/http_rules.h"
#include "config/limits.h"
#include "config/reading.h"
#include "config/table_reader.h"
#include "config/text_file.h"
#include "config/toml_document.h"

namespace sallyport::config {
namespace {

void read_git(const Value& table, const std::string& file, const OperatorConfig& config, PolicyFile& policy,
              Problems& problems) {
  TableReader rule(table, "[[git]]", problems);
  auto repo = read_repo(rule, config, problems);
  const auto access = read_access(rule, problems);
  const Value* credential = rule.find("credential", Value::Kind::String);
  if (credential != nullptr && !is_credential_name(credential->text)) {
    problems.push_back(bad_credential_name(credential->place));
  }
  rule.refuse("version", "below [[git]] this key belongs to the rule", "move it above the first table");
  rule.refuse_for_now("push");
  rule.refuse_for_now("lfs");
  rule.finish();
  if (!repo || !access) return;
  policy.git.push_back({*std::move(repo), *access, credential == nullptr ? "" : credential->text,
                        policy::RuleSource{file, table.place.line}});
  policy.places.push_back(table.place);
  policy.credential_places.push_back(credential == nullptr ? table.place : credential->place);
}

// The tables [[key]], each of them by `read`.
template <typename Read>
void read_rules(TableReader& root, const Value& document, std::string_view key, Problems& problems,
                Read read) {
  const Value* rules = find_list(root, document, key, "a rule", problems);
  if (rules == nullptr) return;
  if (rules->items.size() > kMaxRules) {
    problems.push_back(
        {rules->items[kMaxRules].place, "the file has more than 10000 rules", "use wildcards"});
    return;
  }
  for (const Value& item : rules->items) {
    if (item.kind == Value::Kind::Table) {
      read(item);
    } else {
      problems.push_back({item.place, "a rule must be a table, not " + std::string(name(item.kind)),
                          "write [[" + std::string(key) + "]] above its keys"});
    }
  }
}

}  // namespace

std::expected<PolicyFile, Problems> parse_policy(std::string_view text, const std::string& file,
                                                 const OperatorConfig& config) {
  const std::expected<Value, Problem> document = parse_toml(text, file, kMaxPolicyBytes);
  if (!document) return std::unexpected(Problems{document.error()});

  PolicyFile policy;
  Problems problems;
  TableReader root(*document, "the policy", problems);
  check_version(root, problems);
  read_rules(root, *document, "git", problems,
             [&](const Value& table) { read_git(table, file, config, policy, problems); });
  read_rules(root, *document, "allow", problems,
             [&](const Value& table) { read_allow(table, file, policy, problems); });
  read_rules(root, *document, "deny", problems,
             [&](const Value& table) { read_deny(table, file, policy, problems); });
  read_rules(root, *document, "tcp", problems,
             [&](const Value& table) { read_tcp(table, file, policy, problems); });
  if (const Value* limits = root.find("limits", Value::Kind::Table)) {
    read_limits(*limits, policy.limits, problems);
  }
  root.refuse_for_now("api");
  root.refuse("credential", "a policy names credentials and never defines them",
              "move this table to the operator's file");
  root.refuse("timeouts", "timeouts stand in the operator's file", "move this table there");
  root.refuse("resolvers", "name servers stand in the operator's file", "move this line there");
  root.refuse("approve", "a policy does not approve itself", "move this table to the operator's file");
  root.refuse("host", "hosts are described in the operator's file", "move this table there");
  root.finish();
  if (!problems.empty()) {
    sort_by_place(problems);
    return std::unexpected(std::move(problems));
  }
  return policy;
}

std::expected<PolicyFile, Problems> load_policy(const std::string& path, const OperatorConfig& config) {
  auto file = read_text_file(path, {path}, "the policy file", kMaxPolicyBytes);
  if (!file) return std::unexpected(Problems{file.error()});
  auto policy = parse_policy(file->text, path, config);
  if (policy) {
    policy->path = std::move(file->path);
    policy->text = std::move(file->text);
  }
  return policy;
}

std::expected<policy::GitRule, Problems> parse_git_option(std::string_view text,
                                                          const OperatorConfig& config) {
  const std::string option = "--git";
  const auto problem = [&](std::string message, std::string remedy) {
    return std::unexpected(Problems{Problem{{option}, std::move(message), std::move(remedy)}});
  };
  policy::Access access = policy::Access::Fetch;
  const std::size_t colon = text.rfind(':');
  const std::size_t slash = text.rfind('/');
  if (colon != std::string_view::npos && slash != std::string_view::npos && colon > slash) {
    if (text.substr(colon) != ":push") {
      return problem("the access cannot be " + shown(text.substr(colon + 1)),
                     "write HOST/OWNER/REPO to fetch, HOST/OWNER/REPO:push to push too");
    }
    access = policy::Access::Push;
    text = text.substr(0, colon);
  }
  Result<policy::RepoPattern> pattern = parse_pattern(text, config);
  if (!pattern) return problem(pattern.error().detail, repo_remedy(text));
  const auto entry = config.hosts.find(pattern->host());
  const std::string credential = entry == config.hosts.end() ? "" : entry->second.credential;
  return policy::GitRule{*std::move(pattern), access, credential, policy::RuleSource{option, 0}};
}

}  // namespace sallyport::config
