// Looks for credentials in the git configuration of what a sandbox would see: a workspace that holds one is
// not started, since whatever runs inside reads it. Searched, in every mount and at any depth: the
// configuration of every repository (submodules' and bare ones too), config.worktree, .gitmodules,
// .lfsconfig, .gitconfig, what they include, what git writes URLs into (FETCH_HEAD, reflogs, remotes,
// branches), stores of passwords.
//
// Nothing is run: the files are read here, as far as they lie in a mount, are regular and not too long.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "sandbox/git_secret.h"
#include "sandbox/mounts.h"
#include "sandbox/workspace_guard.h"

namespace sallyport::sandbox {

// A longer one is refused: what it holds could not be said.
inline constexpr std::size_t kMaxGitConfigBytes = std::size_t{1} << 20;
// Of a longer log the rest is not looked at.
inline constexpr std::size_t kMaxGitLogBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxGitFiles = 20'000;  // files read; beyond, the search is cut short
inline constexpr std::size_t kMaxIncludeDepth = 10;  // as git's own
inline constexpr std::size_t kMaxSecretsShown = 20;

struct FoundSecret {
  std::string place;  // "/home/me/widget/.git/config:7"
  GitSecret secret;
};

struct GitSecretSearch {
  std::vector<FoundSecret> found;  // at most kMaxSecretsShown
  std::size_t total = 0;
  Search search = Search::Whole;
};

// `home` is the caller's, for "~/" in includes. Fails when a file that may hold one cannot be read.
Result<GitSecretSearch> search_git_secrets(std::span<const Mount> mounts, const std::string& home);

// For the user: every place, redacted, with what to do about it.
std::string text_of(const GitSecretSearch& search);

}  // namespace sallyport::sandbox
