#include "policy/http_path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport::policy {
namespace {

HttpPath path(std::string_view text) {
  return *HttpPath::parse(text);
}

PathPattern pattern(std::string_view text) {
  return *PathPattern::parse(text);
}

TEST(HttpPath, KeepsTheTextAndComparesDecoded) {
  const HttpPath read = path("/%40scope%2fname/a%20b/?x=%zz&y=/../");
  EXPECT_EQ(read.target(), "/%40scope%2fname/a%20b/?x=%zz&y=/../");
  EXPECT_EQ(read.segments(), (std::vector<std::string>{"@scope/name", "a b", ""}));
  EXPECT_TRUE(read.has_encoded_slash());
  EXPECT_EQ(read.query(), "x=%zz&y=/../");
  EXPECT_EQ(path("/").segments(), std::vector<std::string>{""});
  EXPECT_EQ(path("/a").query(), "");
}

TEST(HttpPath, RefusesWhatHasMoreThanOneReading) {
  using namespace std::string_literals;
  for (const std::string& target : {
           ""s,
           "a"s,
           "*"s,
           "http://x.test/"s,
           "//b"s,
           "/a//b"s,
           "//"s,
           "/a/../b"s,
           "/a/./b"s,
           "/.."s,
           "/."s,
           "/../"s,
           "/a/%2e%2e/b"s,
           "/%2E./x"s,
           "/%2e%2e%2f"s,
           "/a%2f..%2fb"s,
           "/a%2f%2e"s,
           "/a;/../b"s,
           "/..;/b"s,
           "/..;x=1/b"s,
           "/.;/b"s,
           "/%2e%2e;/b"s,
           "/a\\b"s,
           "/a%5cb"s,
           "/a%5C..%5Cb"s,
           "/a%00"s,
           "/a%0d%0ax"s,
           "/a%7f"s,
           "/a%1f"s,
           "/%c0%ae%c0%ae/"s,
           "/%c0%af"s,
           "/%ff"s,
           "/%ed%a0%80"s,
           "/%f4%90%80%80"s,
           "/%e0%80%80"s,
           "/%c2"s,
           "/%252e"s,
           "/%25%32%65"s,
           "/%2525"s,
           "/a%"s,
           "/a%2"s,
           "/a%2g"s,
           "/a#b"s,
           "/a?b#c"s,
           "/a b"s,
           "/a\tb"s,
           "/\xc3\xa4"s,
           "/a\0"s,
           "/x?_method=DELETE"s,
           "/x?a=1&_METHOD=PUT"s,
           "/x?%5fmethod=PUT"s,
       }) {
    const auto read = HttpPath::parse(target);
    ASSERT_FALSE(read) << target;
    EXPECT_EQ(read.error().reason, Reason::BadRequest) << target;
  }
  EXPECT_EQ(HttpPath::parse("/" + std::string(4096, 'a')).error().reason, Reason::TargetTooLong);
  EXPECT_TRUE(HttpPath::parse("/" + std::string(4095, 'a')));
}

TEST(HttpPath, TakesWhatRealClientsSend) {
  for (const char* target :
       {"/", "/a/", "/a/b.tar.gz", "/v1/models?limit=1&after=%C3%A4", "/%40types/node", "/@types%2fnode",
        "/a;v=1/b", "/a:b", "/~me/", "/a...b", "/...", "/%E2%82%AC", "/100%25", "/a+b", "/(x)!*'$,=&"}) {
    EXPECT_TRUE(HttpPath::parse(target)) << target;
  }
}

TEST(HttpPath, KnowsGitsUrlsInEverySpelling) {
  for (const char* target :
       {"/o/r/info/refs", "/o/r.git/info/refs?service=git-upload-pack&service=git-receive-pack",
        "/o/r/git-upload-pack", "/o/r/git-receive-pack", "/o/r/git-receive-pack/", "/o/r/git%2Dreceive-pack",
        "/o%2fr/info%2frefs", "/o/r/GIT-receive-pack", "/o/r/git-receive-pack;x", "/info/refs"}) {
    EXPECT_TRUE(path(target).is_git()) << target;
  }
  for (const char* target :
       {"/", "/o/r", "/o/r/info", "/refs", "/o/r/info/refs/x", "/o/r/xinfo/refs", "/?git-upload-pack"}) {
    EXPECT_FALSE(path(target).is_git()) << target;
  }
}

TEST(PathPattern, MatchesAsDocumented) {
  struct Case {
    const char* pattern;
    const char* path;
    bool matches;
  };
  for (const Case& c : std::vector<Case>{
           {"/", "/", true},
           {"/", "/a", false},
           {"/a", "/a", true},
           {"/a", "/a/", false},
           {"/a", "/A", false},
           {"/a", "/%61", true},
           {"/a/*", "/a/b", true},
           {"/a/*", "/a/", false},
           {"/a/*", "/a", false},
           {"/a/*", "/a/b/c", false},
           {"/a/*", "/a/b%2fc", true},
           {"/a/**", "/a", true},
           {"/a/**", "/a/", true},
           {"/a/**", "/a/b/c", true},
           {"/a/**", "/ab", false},
           {"/**", "/", true},
           {"/**", "/x/y", true},
           {"/**/z", "/x/y/z", true},
           {"/**/z", "/z", true},
           {"/a/**/m/**/z", "/a/b/m/m/c/z", true},
           {"/a/**/m/**/z", "/a/b/c/z", false},
           {"/dl/*.tar.gz", "/dl/x.tar.gz", true},
           {"/dl/*.tar.gz", "/dl/x.tar.gz.sig", false},
           {"/v*/models/*:generate", "/v1beta/models/m-1:generate", true},
           {"/a?", "/a", false},
       }) {
    SCOPED_TRACE(std::string(c.pattern) + " " + c.path);
    const auto read = PathPattern::parse(c.pattern);
    EXPECT_EQ(read && read->matches(path(c.path)), c.matches);
  }
  EXPECT_TRUE(pattern("/Admin/**").matches(path("/aDMIN/x"), policy::Case::Folded));
}

TEST(PathPattern, RefusesWhatCannotMatch) {
  for (const std::string& text :
       {std::string(""), std::string("a"), std::string("/a//b"), std::string("/../a"), std::string("/a/."),
        std::string("/a?b"), std::string("/a%20b"), std::string("/a**"), std::string("/a\\b"),
        std::string("/\x01"), std::string("/\xff"), std::string("/a#"),
        "/" + std::string(PathPattern::kMaxBytes, 'a')}) {
    EXPECT_FALSE(PathPattern::parse(text)) << text;
  }
  std::string deep;
  for (std::size_t i = 0; i < PathPattern::kMaxSegments; ++i) deep += "/a";
  EXPECT_TRUE(PathPattern::parse(deep));
  EXPECT_FALSE(PathPattern::parse(deep + "/a"));
}

TEST(PathPattern, CoversWhatItShows) {
  EXPECT_TRUE(pattern("/**").covers(pattern("/a/*/b")));
  EXPECT_TRUE(pattern("/a/**").covers(pattern("/a/**")));
  EXPECT_TRUE(pattern("/a/*").covers(pattern("/a/b*")));
  EXPECT_FALSE(pattern("/a/*").covers(pattern("/a/**")));
  EXPECT_FALSE(pattern("/a/b").covers(pattern("/a/*")));
}

TEST(PathPattern, IsQuickAgainstThePathThatFitsWorst) {
  std::string text = "/**";
  for (int i = 0; i < 60; ++i) text += i % 2 == 0 ? "/a" : "/**";
  std::string target;
  for (int i = 0; i < 2000; ++i) target += "/a";
  EXPECT_FALSE(pattern(text + "/b").matches(path(target)));
}

}  // namespace
}  // namespace sallyport::policy
