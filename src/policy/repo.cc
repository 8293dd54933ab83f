#include "policy/repo.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "policy/glob.h"

namespace sallyport::policy {
namespace {

constexpr std::string_view kDotGit = ".git";
constexpr char kWildcard = '*';

struct KindRow {
  HostKind kind;
  std::string_view name;
  Case owner_and_name;
  bool nests;
  std::string_view basic_user;
};

// In the order of the enum. Gitea and plain servers take a token with any user name.
constexpr std::array kKinds{
    KindRow{HostKind::Generic, "generic", Case::Exact, false, "x-access-token"},
    KindRow{HostKind::GitHub, "github", Case::Folded, false, "x-access-token"},
    KindRow{HostKind::GitLab, "gitlab", Case::Folded, true, "oauth2"},
    KindRow{HostKind::Gitea, "gitea", Case::Folded, false, "x-access-token"},
    KindRow{HostKind::Bitbucket, "bitbucket", Case::Folded, false, "x-token-auth"},
};
static_assert(kKinds.size() == std::to_underlying(HostKind::Bitbucket) + 1U);

const KindRow& row(HostKind kind) {
  return kKinds.at(std::to_underlying(kind));
}

bool is_segment_char(char c) {
  return is_alnum(c) || c == '.' || c == '_' || c == '-' || c == '~' || c == '+';
}

std::unexpected<Error> unreadable(std::string sentence) {
  return fail(Reason::BadRequest, std::move(sentence));
}

Status check_segment_count(std::size_t count, HostKind kind) {
  if (nests(kind)) {
    if (count >= 2 && count <= kMaxRepoSegments) return {};
    return unreadable("a repository of this host has two to 20 segments behind the host: 'host/group/name'");
  }
  if (count == 2) return {};
  return unreadable("a repository has exactly two segments behind the host: 'host/owner/name'");
}

struct HostAndSegments {
  HostName host;
  std::vector<std::string> segments;
};

std::unexpected<Error> bad_segment(std::string_view segment) {
  if (segment.empty()) {
    return unreadable("a segment is empty: write 'host/owner/name' without doubled or trailing slashes");
  }
  if (segment.find('%') != std::string_view::npos) {
    return unreadable("nothing may be percent-encoded: write the name as it is");
  }
  if (lowered(segment).ends_with(kDotGit)) {
    return unreadable("'" + escaped(segment) + "' ends in '.git' where no suffix is possible");
  }
  return unreadable("'" + escaped(segment) +
                    "' is not a repository's segment: letters, digits, '.', '_', '-', '~' and '+', not "
                    "beginning with '-' or '..', not ending with '.'");
}

// What patterns and repositories share. `is_segment` is the one difference.
Result<HostAndSegments> parse_parts(std::string_view text, HostKind kind,
                                    bool (*is_segment)(std::string_view)) {
  if (text.find("://") != std::string_view::npos) {
    return unreadable("write 'host/owner/name' without a scheme");
  }
  Result<HostName> host = host_of_repo(text);
  if (!host) return fail(std::move(host));
  std::vector<std::string_view> segments = split(text, '/');
  segments.erase(segments.begin());
  if (!segments.empty() && segments.back().ends_with(kDotGit)) {
    segments.back().remove_suffix(kDotGit.size());
  }
  for (const std::string_view segment : segments) {
    if (!is_segment(segment)) return bad_segment(segment);
  }
  if (Status status = check_segment_count(segments.size(), kind); !status) {
    return std::unexpected(std::move(status).error());
  }
  return HostAndSegments{*std::move(host), {segments.begin(), segments.end()}};
}

// A segment in which each '*' stands for at least something that a segment could have there.
bool is_pattern_segment(std::string_view text) {
  if (text.find("**") != std::string_view::npos) return false;
  std::string sample(text);
  std::ranges::replace(sample, kWildcard, 'x');
  return is_repo_segment(sample);
}

std::string joined(const HostName& host, const std::vector<std::string>& segments) {
  std::string text = host.str();
  for (const std::string& segment : segments) text += '/' + segment;
  return text;
}

}  // namespace

std::string_view name(HostKind kind) {
  return row(kind).name;
}

std::optional<HostKind> host_kind_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kKinds, text, &KindRow::name);
  if (found == kKinds.end()) return std::nullopt;
  return found->kind;
}

HostKind well_known_kind(const HostName& host) {
  if (host.str() == "github.com") return HostKind::GitHub;
  if (host.str() == "gitlab.com") return HostKind::GitLab;
  if (host.str() == "bitbucket.org") return HostKind::Bitbucket;
  if (host.str() == "codeberg.org") return HostKind::Gitea;
  return HostKind::Generic;
}

bool folds_case(HostKind kind) {
  return row(kind).owner_and_name == Case::Folded;
}

bool nests(HostKind kind) {
  return row(kind).nests;
}

std::string_view basic_user(HostKind kind) {
  return row(kind).basic_user;
}

std::string RepoId::str() const {
  return joined(host, segments);
}

bool is_repo_segment(std::string_view text) {
  if (text.empty() || text.size() > kMaxSegmentBytes) return false;
  if (!std::ranges::all_of(text, is_segment_char)) return false;
  if (text.starts_with('-') || text.starts_with("..") || text.ends_with('.')) return false;
  return !lowered(text).ends_with(kDotGit);
}

Result<HostName> host_of_repo(std::string_view text) {
  const std::string_view host = text.substr(0, text.find('/'));
  if (host.find(kWildcard) != std::string_view::npos) {
    return unreadable("the host of a repository cannot have a '*'");
  }
  if (host.find(':') != std::string_view::npos && !host.starts_with('[')) {
    return unreadable("the host of a repository has no port");
  }
  return HostName::parse(host);
}

Result<RepoId> parse_repo(std::string_view text, HostKind kind) {
  Result<HostAndSegments> parts = parse_parts(text, kind, is_repo_segment);
  if (!parts) return fail(std::move(parts));
  return RepoId{std::move(parts->host), std::move(parts->segments)};
}

Result<RepoPattern> RepoPattern::parse(std::string_view text, HostKind kind) {
  if (text.find("**") != std::string_view::npos) {
    return unreadable("'**' is not known: '*' stands for anything within one segment");
  }
  Result<HostAndSegments> parts = parse_parts(text, kind, is_pattern_segment);
  if (!parts) return fail(std::move(parts));
  if (const std::string_view why = special_name(parts->host); !why.empty()) {
    return unreadable("'" + parts->host.str() + "' cannot be granted: that name " + std::string(why));
  }
  return RepoPattern(std::move(parts->host), kind, std::move(parts->segments));
}

RepoPattern::RepoPattern(HostName host, HostKind kind, std::vector<std::string> segments)
    : host_(std::move(host)), kind_(kind), segments_(std::move(segments)) {}

bool RepoPattern::matches(const RepoId& repo) const {
  return matches(repo.host, repo.segments);
}

bool RepoPattern::matches(const HostName& host, const std::vector<std::string>& segments) const {
  return host == host_ &&
         std::ranges::equal(segments_, segments,
                            [rule = row(kind_).owner_and_name](const auto& pattern, const auto& text) {
                              return glob_matches(pattern, text, rule);
                            });
}

std::size_t RepoPattern::equal_leading_segments(const RepoId& repo) const {
  if (repo.host != host_) return 0;
  const auto [mine, theirs] = std::ranges::mismatch(
      segments_, repo.segments,
      [rule = row(kind_).owner_and_name](const std::string& pattern, const std::string& text) {
        return glob_matches(pattern, text, rule);
      });
  return static_cast<std::size_t>(mine - segments_.begin());
}

std::string RepoPattern::str() const {
  return joined(host_, segments_);
}

std::size_t RepoPattern::wildcards() const {
  std::size_t count = 0;
  for (const std::string& segment : segments_) {
    count += static_cast<std::size_t>(std::ranges::count(segment, kWildcard));
  }
  return count;
}

bool RepoPattern::same_as(const RepoPattern& other) const {
  return covers(other) && other.covers(*this);
}

bool RepoPattern::covers(const RepoPattern& other) const {
  // The other's '*' is a character like any, which only a '*' of ours stands for.
  return matches(other.host_, other.segments_);
}

}  // namespace sallyport::policy
