// Asking git itself what stands in a file of its making: whatever judges a repository's configuration must
// read it as git does. Git gets no configuration of anybody's but of the home that is named, nor the
// repository itself to look into.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "os/process.h"
#include "os/spawn.h"

namespace sallyport::sandbox {

inline constexpr std::chrono::milliseconds kGitTimeout{5'000};

struct GitQuestion {
  std::vector<std::string> arguments;          // behind "git"
  std::vector<std::string> environment;        // besides PATH, LC_ALL and GIT_CONFIG_NOSYSTEM
  std::vector<os::DescriptorMap> descriptors;  // besides the answer
  std::optional<os::Ids> become;               // whom to ask as, when root
  std::string home = "/nonexistent";           // whose configuration git reads besides
  std::size_t max_answer_bytes = 1024 * 1024;
  std::chrono::milliseconds timeout = kGitTimeout;
};

struct GitAnswer {
  int code = 0;  // 1: nothing found, for `git config`
  std::string text;
};

// An error: git is not there, does not end, or says too much.
Result<GitAnswer> ask_git(const GitQuestion& question);

// The (key, value) pairs of an opened configuration file that match, includes not followed; keys as git
// normalises them, section and last part in lower case.
using GitSettings = std::vector<std::pair<std::string, std::string>>;
Result<GitSettings> git_settings(int file, const std::string& key_pattern,
                                 const std::optional<os::Ids>& become);

}  // namespace sallyport::sandbox
