#include "os/links.h"

#include <gtest/gtest.h>

namespace sallyport::os {
namespace {

TEST(Links, AcceptOnlyLoopbackAndInertDevices) {
  const Link lo{.index = 1, .name = "lo", .loopback = true, .up = true, .addresses = 3};
  const std::string found = "the sandbox's network namespace holds the device ";
  const struct {
    const char* name;
    std::vector<Link> links;
    std::string error;
  } cases[] = {
      {"lo", {lo}, ""},
      {"inert devices", {lo, {.index = 2, .name = "tunl0"}, {.index = 3, .name = "sit0"}}, ""},
      {"inert device raised",
       {lo, {.index = 2, .name = "sit0", .up = true}},
       found + "\"sit0\", and it is in use"},
      {"inert device with address",
       {lo, {.index = 2, .name = "gre0", .addresses = 1}},
       found + "\"gre0\", and it is in use"},
      {"veth", {lo, {.index = 2, .name = "eth0"}}, found + "\"eth0\""},
      {"named like an inert one", {lo, {.index = 2, .name = "sit00"}}, found + "\"sit00\""},
      {"only named lo", {{.index = 2, .name = "lo"}}, found + "\"lo\""},
      {"loopback under another name", {{.index = 1, .name = "ol", .loopback = true}}, found + "\"ol\""},
      {"hostile name", {lo, {.index = 2, .name = "e\n\x1b[31m"}}, found + "\"e\\x0a\\x1b[31m\""},
      {"nothing", {}, "the sandbox's network namespace has no loopback device"},
  };
  for (const auto& test : cases) {
    auto only = only_loopback(test.links);
    EXPECT_EQ(only ? "" : only.error().detail, test.error) << test.name;
  }
}

}  // namespace
}  // namespace sallyport::os
