// Repositories and the patterns that grant them. docs/policy.md holds the matching rules in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/host.h"

namespace sallyport::policy {

// What software a git host runs: decides how names compare, whether groups nest, and how a token is
// presented.
enum class HostKind : std::uint8_t { Generic, GitHub, GitLab, Gitea, Bitbucket };

std::string_view name(HostKind kind);
std::optional<HostKind> host_kind_from_name(std::string_view text);
// The kind of a host that the operator's file does not describe: github.com, gitlab.com, bitbucket.org,
// codeberg.org are known, every other is Generic.
HostKind well_known_kind(const HostName& host);
// Owner and name compare without case on hosts that fold it; Generic compares byte for byte.
bool folds_case(HostKind kind);
// GitLab's groups nest: two or more segments; exactly two everywhere else.
bool nests(HostKind kind);
// The user name that goes with a token in HTTP Basic.
std::string_view basic_user(HostKind kind);

inline constexpr std::size_t kMaxRepoSegments = 20;  // GitLab's own limit on nesting
inline constexpr std::size_t kMaxSegmentBytes = 255;

// A repository: host and path segments without the optional ".git", spelled as the client spelled them.
struct RepoId {
  HostName host;
  std::vector<std::string> segments;

  std::string str() const;  // "github.com/acme/widget"
};

// Letters, digits, '.', '_', '-', '~', '+'; not empty, not over kMaxSegmentBytes; no leading '-' and no
// leading
// "..", so never "." or ".."; ends in neither '.' nor ".git" in any case (the one optional suffix was taken
// off before). ".github" is a segment: repositories of that name exist.
bool is_repo_segment(std::string_view text);

// The host of "host/owner/name" (or of a pattern), for looking up its kind before the rest is parsed.
Result<HostName> host_of_repo(std::string_view text);

// "host/owner/name" as the command line and --push take it; one optional ".git". Error::detail is a sentence
// for the person who wrote it.
Result<RepoId> parse_repo(std::string_view text, HostKind kind);

class RepoPattern {
 public:
  // "github.com/acme/*": '*' stands for any run of characters within one segment, never in the host. A host
  // with a special_name() is refused. Error::detail is a sentence for the person who wrote the rule.
  static Result<RepoPattern> parse(std::string_view text, HostKind kind);

  bool matches(const RepoId& repo) const;
  const HostName& host() const { return host_; }
  std::string str() const;
  // How many '*' it has: fewer is more specific.
  std::size_t wildcards() const;
  // The same set of repositories by the host's way of comparing.
  bool same_as(const RepoPattern& other) const;
  // Every repository that `other` matches is matched by this one too, as far as the two texts show it.
  bool covers(const RepoPattern& other) const;
  // How many leading segments match `repo`'s, its host being this one's: how close a rule came.
  std::size_t equal_leading_segments(const RepoId& repo) const;

 private:
  RepoPattern(HostName host, HostKind kind, std::vector<std::string> segments);
  bool matches(const HostName& host, const std::vector<std::string>& segments) const;
  HostName host_;
  HostKind kind_;
  std::vector<std::string> segments_;
};

}  // namespace sallyport::policy
