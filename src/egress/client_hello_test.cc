#include "egress/client_hello.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport::egress {
namespace {

using namespace std::string_literals;

std::string u16(std::size_t value) {
  return {static_cast<char>(value >> 8U & 0xFFU), static_cast<char>(value & 0xFFU)};
}
std::string entry(std::string_view name, char type = '\0') {
  return type + u16(name.size()) + std::string(name);
}
std::string list(const std::string& entries) {
  return u16(entries.size()) + entries;
}

TEST(ServerName, IsReadInLowerCaseWithoutOneTrailingDot) {
  for (const char* name : {"api.ok.test", "API.ok.TEST", "api.ok.test."}) {
    const auto host = parse_server_name(list(entry(name)));
    ASSERT_TRUE(host) << name;
    EXPECT_EQ(host->str(), "api.ok.test") << name;
  }
}

TEST(ServerName, RefusesEveryNameThatIsNotOneHost) {
  struct Case {
    std::string name;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"", Reason::NoSni},
      {"api.ok.test:443", Reason::BadRequest},
      {"api.ok.test\0.evil.test"s, Reason::BadRequest},
      {"api.ok.test\n", Reason::BadRequest},
      {"api ok.test", Reason::BadRequest},
      {"api%2eok.test", Reason::BadRequest},
      {"*.ok.test", Reason::BadRequest},
      {"api.ok.test..", Reason::BadRequest},
      {".api.ok.test", Reason::BadRequest},
      {"api_x.ok.test", Reason::BadRequest},
      {"b\xc3\xbc"
       "cher.test",
       Reason::BadRequest},
      {"localhost", Reason::BadRequest},
      {std::string(254, 'a'), Reason::BadRequest},
      {"127.0.0.1", Reason::IpLiteral},
      {"127.1", Reason::IpLiteral},
      {"2130706433", Reason::IpLiteral},
      {"0x7f000001", Reason::IpLiteral},
      {"[::1]", Reason::IpLiteral},
      {"::1", Reason::IpLiteral},
  };
  for (const auto& test : cases) {
    const auto host = parse_server_name(list(entry(test.name)));
    ASSERT_FALSE(host) << test.name;
    EXPECT_EQ(host.error().reason, test.reason) << test.name << ": " << host.error().detail;
  }
}

TEST(ServerName, EscapesTheNameInItsDetail) {
  EXPECT_EQ(parse_server_name(list(entry("a\n.test"))).error().detail.find('\n'), std::string::npos);
}

TEST(ServerName, RefusesEveryListThatIsNotOneHostName) {
  const std::string name = entry("api.ok.test");
  struct Case {
    std::string_view why;
    std::string bytes;
    Reason reason;
  };
  const std::vector<Case> cases{
      {"nothing", "", Reason::BadRequest},
      {"one byte", "\0"s, Reason::BadRequest},
      {"an empty list", list(""), Reason::NoSni},
      {"two names", list(name + entry("evil.test")), Reason::BadRequest},
      {"the same name twice", list(name + name), Reason::BadRequest},
      {"another type", list(entry("api.ok.test", '\1')), Reason::BadRequest},
      {"a name behind another type", list(entry("x", '\1') + name), Reason::BadRequest},
      {"a list longer than the extension", u16(name.size() + 1) + name, Reason::BadRequest},
      {"a list shorter than the extension", u16(name.size() - 1) + name, Reason::BadRequest},
      {"a byte behind the list", list(name) + "x", Reason::BadRequest},
      {"a byte behind the entry", list(name + "x"), Reason::BadRequest},
      {"an entry without length", list("\0\0"s), Reason::BadRequest},
      {"an entry longer than the list",
       list("\0\0\x09"
            "api"s),
       Reason::BadRequest},
  };
  for (const auto& test : cases) {
    const auto host = parse_server_name(test.bytes);
    ASSERT_FALSE(host) << test.why;
    EXPECT_EQ(host.error().reason, test.reason) << test.why << ": " << host.error().detail;
  }
}

}  // namespace
}  // namespace sallyport::egress
