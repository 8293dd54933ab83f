#include "policy/grant.h"

#include <gtest/gtest.h>

namespace sallyport::policy {
namespace {

HostName host(std::string_view text) {
  return HostName::parse(text).value();
}

TEST(Grant, FindsAHostsOwnEntryBeforeThatOfTheLongestNameAboveIt) {
  Grant grant;
  grant.hosts[host("own.dev.corp.example")].ca_pem = "own";
  grant.hosts_below[host("corp.example")].ca_pem = "corp";
  grant.hosts_below[host("dev.corp.example")].ca_pem = "dev";
  const std::pair<const char*, const char*> cases[] = {
      {"own.dev.corp.example", "own"},   {"a.own.dev.corp.example", "dev"}, {"a.dev.corp.example", "dev"},
      {"a.b.c.dev.corp.example", "dev"}, {"dev.corp.example", "corp"},      {"a.corp.example", "corp"},
      {"corp.example", nullptr},         {"evil-corp.example", nullptr},    {"a.evil-corp.example", nullptr},
      {"corp.example.test", nullptr},    {"other.example", nullptr},
  };
  for (const auto& [name, expected] : cases) {
    const UpstreamHost* entry = grant.find_host(host(name));
    ASSERT_EQ(entry != nullptr, expected != nullptr) << name;
    if (entry != nullptr) {
      EXPECT_EQ(entry->ca_pem, expected) << name;
    }
  }
}

}  // namespace
}  // namespace sallyport::policy
