#include "policy/repo.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport::policy {
namespace {

using enum HostKind;

constexpr std::string_view kRefused = "refused";
constexpr std::string_view kMatch = "match";
constexpr std::string_view kDiffers = "differs";

std::string_view compare(std::string_view pattern, std::string_view repo, HostKind kind) {
  const Result<RepoPattern> parsed_pattern = RepoPattern::parse(pattern, kind);
  EXPECT_TRUE(parsed_pattern) << pattern;
  const Result<RepoId> parsed_repo = parse_repo(repo, kind);
  if (!parsed_pattern || !parsed_repo) return kRefused;
  return parsed_pattern->matches(*parsed_repo) ? kMatch : kDiffers;
}

struct Spelling {
  const char* pattern;
  const char* repo;
  HostKind kind;
  std::string_view expected;
};

TEST(Repositories, CompareByTheirSpelling) {
  for (const Spelling& s : std::vector<Spelling>{
           {"h.test/acme/widget", "h.test/acme/widget", Generic, kMatch},
           {"h.test/acme/widget", "h.test/acme/widget.git", Generic, kMatch},
           {"h.test/acme/widget.git", "h.test/acme/widget", Generic, kMatch},
           {"h.test/acme/widget", "H.TEST/acme/widget", Generic, kMatch},
           {"h.test/acme/widget", "h.test./acme/widget", Generic, kMatch},
           // Case: folded where the forge folds it.
           {"h.test/acme/widget", "h.test/Acme/Widget", GitHub, kMatch},
           {"h.test/Acme/Widget", "h.test/acme/wiDget.git", GitLab, kMatch},
           {"h.test/acme/widget", "h.test/ACME/widget", Gitea, kMatch},
           {"h.test/acme/widget", "h.test/ACME/widget", Bitbucket, kMatch},
           {"h.test/acme/widget", "h.test/Acme/widget", Generic, kDiffers},
           {"h.test/acme/widget", "h.test/acme/Widget", Generic, kDiffers},
           // The suffix: one, in lower case, at the end.
           {"h.test/acme/widget", "h.test/acme/widget.git.git", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget.GIT", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme.git/widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/.git", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget.git/", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget.gi", GitHub, kDiffers},
           {"h.test/acme/widget", "h.test/acme/widget.wiki.git", GitHub, kDiffers},
           // Slashes and dots.
           {"h.test/acme/widget", "h.test/acme/widget/", GitHub, kRefused},
           {"h.test/acme/widget", "h.test//acme/widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme//widget", GitHub, kRefused},
           {"h.test/acme/widget", "/h.test/acme/widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/./widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/x/../widget", GitLab, kRefused},
           {"h.test/acme/widget", "h.test/../widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/..widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget.", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme\\widget", GitHub, kRefused},
           // Encodings.
           {"h.test/acme/widget", "h.test/acme/w%69dget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme%2fwidget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/%2e%2e", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget%00", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/wid get", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget;x", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget?x", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget#x", GitHub, kRefused},
           // Not ASCII: a dotless i, a full-width letter, a combining mark, a Kelvin sign, an invalid byte.
           {"h.test/acme/widget",
            "h.test/acme/w\xc4\xb1"
            "dget",
            GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/\xef\xbd\x97idget", GitHub, kRefused},
           {"h.test/acme/widget",
            "h.test/acme/wi\xcc\x88"
            "dget",
            GitHub, kRefused},
           {"h.test/acme/kit", "h.test/acme/\xe2\x84\xaait", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget\xff", GitHub, kRefused},
           // Nesting: exactly two segments, or two and more.
           {"h.test/acme/widget", "h.test/widget", GitHub, kRefused},
           {"h.test/acme/widget", "h.test", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget/x", GitHub, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget/x", Generic, kRefused},
           {"h.test/acme/widget", "h.test/acme/widget/x", GitLab, kDiffers},
           {"h.test/acme/team/widget", "h.test/acme/team/widget", GitLab, kMatch},
           {"h.test/acme/team/widget", "h.test/acme/widget", GitLab, kDiffers},
           // Wildcards stay in their segment.
           {"h.test/acme/*", "h.test/acme/widget.git", GitHub, kMatch},
           {"h.test/acme/*", "h.test/acme2/widget", GitHub, kDiffers},
           {"h.test/acme/*", "h.test/acme/team/widget", GitLab, kDiffers},
           {"h.test/acme/*/*", "h.test/acme/team/widget", GitLab, kMatch},
           {"h.test/*/*", "h.test/acme/widget", GitHub, kMatch},
           {"h.test/*/*", "other.test/acme/widget", GitHub, kDiffers},
           {"h.test/acme/agent-*", "h.test/acme/agent-", GitHub, kMatch},
           {"h.test/acme/agent-*", "h.test/acme/agent-7", GitHub, kMatch},
           {"h.test/acme/agent-*", "h.test/acme/agent7", GitHub, kDiffers},
           {"h.test/acme/*-x-*", "h.test/acme/a-x-b-x-c", GitHub, kMatch},
           {"h.test/acme/*-x-*y", "h.test/acme/a-x-b", GitHub, kDiffers},
           {"h.test/acme/Agent-*", "h.test/acme/AGENT-7", GitHub, kMatch},
           {"h.test/acme/Agent-*", "h.test/acme/AGENT-7", Generic, kDiffers},
           // Hosts are exact.
           {"h.test/acme/widget", "x.h.test/acme/widget", GitHub, kDiffers},
           {"h.test/acme/widget", "h.test.evil.test/acme/widget", GitHub, kDiffers},
           {"h.test/acme/widget", "h.test:443/acme/widget", GitHub, kRefused},
           {"h.test/acme/widget", "127.0.0.1/acme/widget", GitHub, kRefused},
           {"h.test/acme/widget", "https://h.test/acme/widget", GitHub, kRefused},
           {"h.test/acme/widget", "git@h.test/acme/widget", GitHub, kRefused},
           // Odd names that exist.
           {"h.test/acme/.github", "h.test/acme/.github", GitHub, kMatch},
           {"h.test/~user/repo", "h.test/~user/repo", Generic, kMatch},
           {"h.test/acme/c++", "h.test/acme/c++", GitHub, kMatch},
           {"h.test/acme/a.b_c-d", "h.test/acme/a.b_c-d", GitHub, kMatch},
       }) {
    EXPECT_EQ(compare(s.pattern, s.repo, s.kind), s.expected) << s.pattern << " against " << s.repo;
  }
}

TEST(RepoPattern, RefusesWithASentence) {
  struct Case {
    const char* text;
    HostKind kind;
    const char* sentence;
  };
  for (const Case& c : std::vector<Case>{
           {"*.test/acme/widget", GitHub, "the host of a repository cannot have a '*'"},
           {"*/acme/widget", GitHub, "the host of a repository cannot have a '*'"},
           {"h.test/acme/**", GitHub, "'**' is not known: '*' stands for anything within one segment"},
           {"h.test/**/widget", GitLab, "'**' is not known: '*' stands for anything within one segment"},
           {"h.test:8443/acme/widget", GitHub, "the host of a repository has no port"},
           {"https://h.test/acme/widget", GitHub, "write 'host/owner/name' without a scheme"},
           {"h.test/acme", GitHub,
            "a repository has exactly two segments behind the host: 'host/owner/name'"},
           {"h.test/a/b/c", GitHub,
            "a repository has exactly two segments behind the host: 'host/owner/name'"},
           {"h.test/a", GitLab,
            "a repository of this host has two to 20 segments behind the host: 'host/group/name'"},
           {"h.test/acme/", GitHub,
            "a segment is empty: write 'host/owner/name' without doubled or trailing slashes"},
           {"h.test/acme/%2e", GitHub, "nothing may be percent-encoded: write the name as it is"},
           {"h.test/acme/x.git.git", GitHub, "'x.git' ends in '.git' where no suffix is possible"},
           {"h.test/acme/*.git.git", GitHub, "'*.git' ends in '.git' where no suffix is possible"},
           {"acme/widget", GitHub, "the host name has a single label"},
           {"127.0.0.1/acme/widget", GitHub, "'127.0.0.1' is an address, not a name"},
           {"git.localhost/acme/widget", GitHub,
            "'git.localhost' cannot be granted: that name means this very machine"},
           {"host.docker.internal/acme/widget", GitHub,
            "'host.docker.internal' cannot be granted: that name belongs to the inside of a cloud or of a "
            "container engine"},
       }) {
    const Result<RepoPattern> pattern = RepoPattern::parse(c.text, c.kind);
    ASSERT_FALSE(pattern) << c.text;
    EXPECT_EQ(pattern.error().detail, c.sentence) << c.text;
  }
}

TEST(RepoPattern, KeepsItsLimits) {
  const std::string longest(kMaxSegmentBytes, 'a');
  EXPECT_TRUE(parse_repo("h.test/acme/" + longest, GitHub));
  EXPECT_TRUE(parse_repo("h.test/acme/" + longest + ".git", GitHub));
  EXPECT_FALSE(parse_repo("h.test/acme/" + longest + "a", GitHub));
  std::string nested = "h.test";
  for (std::size_t i = 0; i < kMaxRepoSegments; ++i) nested += "/a";
  EXPECT_TRUE(parse_repo(nested, GitLab));
  EXPECT_FALSE(parse_repo(nested + "/a", GitLab));
}

TEST(RepoPattern, KnowsWhichOtherPatternItContains) {
  const auto covers = [](const char* a, const char* b, HostKind kind = GitHub) {
    return RepoPattern::parse(a, kind)->covers(*RepoPattern::parse(b, kind));
  };
  EXPECT_TRUE(covers("h.test/acme/*", "h.test/acme/agent-*"));
  EXPECT_TRUE(covers("h.test/acme/*", "h.test/ACME/widget"));
  EXPECT_TRUE(covers("h.test/*/*", "h.test/acme/*"));
  EXPECT_FALSE(covers("h.test/acme/agent-*", "h.test/acme/*"));
  EXPECT_FALSE(covers("h.test/acme/*", "h.test/*/widget"));
  EXPECT_FALSE(covers("h.test/acme/*", "other.test/acme/*"));
  EXPECT_FALSE(covers("h.test/acme/*", "h.test/ACME/widget", Generic));
  EXPECT_TRUE(
      RepoPattern::parse("h.test/a/b.git", GitHub)->same_as(*RepoPattern::parse("H.test/A/B", GitHub)));
  EXPECT_FALSE(
      RepoPattern::parse("h.test/a/b", Generic)->same_as(*RepoPattern::parse("h.test/A/b", Generic)));
}

TEST(HostKind, OfWellKnownHostsOnly) {
  const auto kind_of = [](const char* host) { return well_known_kind(*HostName::parse(host)); };
  EXPECT_EQ(kind_of("github.com"), GitHub);
  EXPECT_EQ(kind_of("gitlab.com"), GitLab);
  EXPECT_EQ(kind_of("bitbucket.org"), Bitbucket);
  EXPECT_EQ(kind_of("codeberg.org"), Gitea);
  EXPECT_EQ(kind_of("www.github.com"), Generic);
  EXPECT_EQ(kind_of("forge.test"), Generic);
}

TEST(HostKind, GoesThroughItsName) {
  for (const HostKind kind : {Generic, GitHub, GitLab, Gitea, Bitbucket}) {
    EXPECT_EQ(host_kind_from_name(name(kind)), kind);
  }
  EXPECT_EQ(host_kind_from_name("GitHub"), std::nullopt);
  EXPECT_EQ(basic_user(GitHub), "x-access-token");
  EXPECT_EQ(basic_user(GitLab), "oauth2");
  EXPECT_EQ(basic_user(Bitbucket), "x-token-auth");
}

}  // namespace
}  // namespace sallyport::policy
