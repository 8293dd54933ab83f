// Where a grant comes from: the two files and the options of the command line, loaded and joined.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "os/process.h"

namespace sallyport::config {

// A file that the user named must be there; one at its usual place may be missing, and is then empty.
enum class Presence : std::uint8_t { Usual, Named };

struct Sources {
  std::string policy_path;  // --policy, or sallyport.toml of the working directory
  Presence policy = Presence::Usual;
  std::string config_path;  // --config, or the operator's file at its usual place
  Presence config = Presence::Usual;
  std::vector<std::string> git_options;  // HOST/OWNER/REPO[:push]
  std::string trust_folder;              // where consent to policy files is kept (trust_store.h)
};

// The policy file that a grant was made of. It was read once: what consent is asked for is what is used.
struct PolicySource {
  std::string path;  // without links
  std::string text;
  std::vector<policy::GitRule> unapproved;  // rules whose use of a credential needs the user's consent
};

struct Loaded {
  policy::Grant grant;
  OperatorConfig config;
  std::optional<PolicySource> policy;  // none without a policy file
};

// `client`: by whose rights the policy is read; the operator's file is read by our own.
std::expected<Loaded, Problems> load(const Sources& sources, const std::optional<os::Ids>& client = {});

// Every problem on a line of its own.
std::string text_of(const Problems& problems);

}  // namespace sallyport::config
