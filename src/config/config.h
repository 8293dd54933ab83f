// The two files, read strictly: every unknown key, wrong type, duplicate and dangling name is a Problem with
// its place and a remedy. Nothing half-read is ever used: problems mean no Grant.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/approval.h"
#include "policy/grant.h"

namespace sallyport::config {

struct Place {
  std::string file;  // or the option, "--git"
  int line = 0;      // from 1; 0: the file as a whole
  int column = 0;    // from 1, in characters
};

struct Problem {
  Place place;
  std::string message;  // what is wrong, in one sentence
  std::string remedy;   // what to do next

  std::string str() const;  // "sallyport.toml:3:1: [[git]] has no key 'acess'; did you mean 'access'?"
};
using Problems = std::vector<Problem>;

// [credential.NAME] of the operator's file. Only the path: the warden opens the file, the vault alone reads
// it.
struct CredentialSource {
  std::string file;
  Place place;
  // Of a daemon that is root: who may use it besides, by name or uid.
  std::vector<std::string> users = {};

  bool operator==(const CredentialSource& other) const { return file == other.file; }
};

struct HostEntry {
  policy::UpstreamHost upstream;  // its ca_pem is read from the file that `ca` names
  std::string credential;         // what `run --git` uses at this host; empty: anonymous
  Place place;
};

// ~/.config/sallyport/config.toml.
struct OperatorConfig {
  std::map<std::string, CredentialSource> credentials;
  std::map<policy::HostName, HostEntry> hosts;
  std::map<policy::HostName, policy::UpstreamHost> hosts_below;  // [host."*.NAME"] by NAME
  std::vector<policy::Approval> approvals;
  policy::Timeouts timeouts;
  policy::Limits limits;
  std::vector<policy::PinnedAddress> resolvers;  // empty: those of resolv.conf
};

// A rule and where it stands, for problems that are found later.
template <typename Rule>
struct Written {
  Rule rule;
  Place place;
  std::vector<Place> host_places;  // of rule.hosts[i], or of the one host
};

// sallyport.toml: rules by name only.
struct PolicyFile {
  std::vector<Written<policy::AllowRule>> allow;
  std::vector<Written<policy::DenyRule>> deny;
  std::vector<Written<policy::TcpRule>> tcp;
  std::vector<policy::GitRule> git;
  std::vector<Place> places;             // of git[i], for problems found later
  std::vector<Place> credential_places;  // of git[i].credential
  // Those that it does not mention are as high as they may be: the operator's hold.
  policy::Limits limits = policy::Limits::highest();
  // As load_policy() read it: where the file lies, without links, and its bytes. Consent is given to these.
  std::string path;
  std::string text;
};

inline constexpr std::size_t kMaxFileBytes = std::size_t{1024} * 1024;        // the operator's file, a CA
inline constexpr std::size_t kMaxPolicyBytes = std::size_t{8} * 1024 * 1024;  // a list of 100,000 names
inline constexpr std::size_t kMaxRules = 10'000;                              // of each kind
inline constexpr std::size_t kMaxApprovals = 1'000;
inline constexpr std::size_t kMaxHosts = 10'000;  // described in the operator's file
inline constexpr std::size_t kMaxCredentialNameBytes = 32;

// $HOME when it is an absolute path, else "".
std::string home_folder();

// Reads the PEM files that `ca` names, nothing else. "~/" stands for `home`.
std::expected<OperatorConfig, Problems> parse_operator_config(std::string_view text, const std::string& file,
                                                              const std::string& home = home_folder());
// Opens it as `os::open_private_file` does: group- or world-readable, foreign-owned or symlinked is a
// problem. A file that is not there is an empty one.
std::expected<OperatorConfig, Problems> load_operator_config(const std::string& path);

// Patterns need the hosts' kinds, so the operator's file comes first.
std::expected<PolicyFile, Problems> parse_policy(std::string_view text, const std::string& file,
                                                 const OperatorConfig& config);
// A missing file, one that is no regular file, or one that anybody may write is a problem.
std::expected<PolicyFile, Problems> load_policy(const std::string& path, const OperatorConfig& config);

// One --git HOST/OWNER/REPO[:push]. It uses the credential of the host's entry.
std::expected<policy::GitRule, Problems> parse_git_option(std::string_view text,
                                                          const OperatorConfig& config);

// Joins everything, and finds what only the whole shows: credentials that nobody defines, rules that can
// never decide. Options come before the file's rules, so that of two equal patterns the command line's
// decides.
std::expected<policy::Grant, Problems> make_grant(const PolicyFile& policy,
                                                  const std::vector<policy::GitRule>& options,
                                                  const OperatorConfig& config);

}  // namespace sallyport::config
