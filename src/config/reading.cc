#include "config/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sallyport::config {
namespace {

constexpr std::string_view kRuleRemedy = "add repo = \"host/owner/name\"";
constexpr std::string_view kAccessRemedy = "add access = \"fetch\" or access = \"push\"";

std::optional<policy::Access> access_from_name(std::string_view text) {
  if (text == policy::name(policy::Access::Fetch)) return policy::Access::Fetch;
  if (text == policy::name(policy::Access::Push)) return policy::Access::Push;
  return std::nullopt;
}

}  // namespace

void check_version(TableReader& root, Problems& problems) {
  const Value* version = root.require("version", Value::Kind::Integer, "begin it with version = 1");
  if (version != nullptr && version->integer != 1) {
    problems.push_back({version->place,
                        "version " + std::to_string(version->integer) + " of the format is not known",
                        "write version = 1"});
  }
}

bool is_credential_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxCredentialNameBytes || !is_lower(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_lower(c) || is_digit(c) || c == '-' || c == '_'; });
}

Problem bad_credential_name(const Place& place) {
  return {place, "this is not a credential's name",
          "use lower-case letters, digits, '-' and '_', at most 32; never write a token here"};
}

policy::HostKind kind_of(const OperatorConfig& config, const policy::HostName& host) {
  const auto entry = config.hosts.find(host);
  return entry == config.hosts.end() ? policy::well_known_kind(host) : entry->second.upstream.kind;
}

Result<policy::RepoPattern> parse_pattern(std::string_view text, const OperatorConfig& config) {
  Result<policy::HostName> host = policy::host_of_repo(text);
  // A scheme has a better message of its own, and needs no kind.
  if (!host) return policy::RepoPattern::parse(text, policy::HostKind::Generic);
  return policy::RepoPattern::parse(text, kind_of(config, *host));
}

const Value* find_list(TableReader& root, const Value& document, std::string_view key, std::string_view each,
                       Problems& problems) {
  const std::size_t before = problems.size();
  const Value* list = root.find(key, Value::Kind::Array);
  if (problems.size() == before) return list;
  // The usual slip has a better remedy than its type.
  const bool single = std::ranges::any_of(document.entries, [&](const Entry& entry) {
    return entry.key == key && entry.value.kind == Value::Kind::Table;
  });
  if (single)
    problems.back().remedy = fmt::format("write [[{}]] with two brackets: each one is {}", key, each);
  return nullptr;
}

// The commonest slip is to leave the host out; what is wrong behind a host has its remedy in the sentence.
std::string repo_remedy(std::string_view text) {
  return policy::host_of_repo(text) ? "" : "begin with the host's name, as in \"github.com/acme/widget\"";
}

std::optional<policy::Access> read_access(TableReader& rule, Problems& problems) {
  const Value* value = rule.require("access", Value::Kind::String, kAccessRemedy);
  if (value == nullptr) return std::nullopt;
  const auto access = access_from_name(value->text);
  if (!access) {
    problems.push_back({value->place, "access cannot be " + shown(value->text),
                        "write \"fetch\" or \"push\" (push includes fetch)"});
  }
  return access;
}

std::optional<policy::RepoPattern> read_repo(TableReader& rule, const OperatorConfig& config,
                                             Problems& problems) {
  const Value* value = rule.require("repo", Value::Kind::String, kRuleRemedy);
  if (value == nullptr) return std::nullopt;
  Result<policy::RepoPattern> pattern = parse_pattern(value->text, config);
  if (pattern) return *std::move(pattern);
  problems.push_back({value->place, "repo: " + pattern.error().detail, repo_remedy(value->text)});
  return std::nullopt;
}

}  // namespace sallyport::config
