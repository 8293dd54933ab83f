#include "config/shared_hosts.h"

#include <gtest/gtest.h>

namespace sallyport::config {
namespace {

policy::HostPattern pattern(const char* text) {
  return *policy::HostPattern::parse(text);
}

TEST(SharedHosts, AreWildcardsAtAPublicSuffixOrAboveOne) {
  for (const char* text : {"*.co.uk",
                           "*.com.au",
                           "*.github.io",
                           "*.gitlab.io",
                           "*.pages.dev",
                           "*.s3.amazonaws.com",
                           "*.amazonaws.com",
                           "*.eu-west-3.amazonaws.com",
                           "*.s3.eu-west-3.amazonaws.com",
                           "*.execute-api.eu-west-3.amazonaws.com",
                           "*.compute.amazonaws.com",
                           "*.cloudfront.net",
                           "*.fastly.net",
                           "*.ssl.fastly.net",
                           "*.blob.core.windows.net",
                           "*.core.windows.net",
                           "*.windows.net",
                           "*.azurewebsites.net",
                           "*.azureedge.net",
                           "*.googleapis.com",
                           "*.storage.googleapis.com",
                           "*.kawasaki.jp",
                           "*.r2.cloudflarestorage.com"}) {
    EXPECT_TRUE(is_shared(pattern(text))) << text;
  }
}

TEST(SharedHosts, AreNotTheNamesThatSomebodyOwns) {
  for (const char* text :
       {"*.example.com", "*.example.co.uk", "*.acme.github.io", "*.bucket.s3.amazonaws.com", "*.wild.test",
        "*.cdn.wild.test", "*.account.blob.core.windows.net", "*.pypi.org", "*.google.com", "*.microsoft.com",
        // One name of a shared zone is whoever has it.
        "acme.github.io", "bucket.s3.amazonaws.com", "d1.cloudfront.net"}) {
    EXPECT_FALSE(is_shared(pattern(text))) << text;
  }
}

TEST(DohHosts, AreFoundByNameBelowItAndByWildcard) {
  for (const char* text :
       {"dns.google", "cloudflare-dns.com", "one.one.one.one", "dns.quad9.net", "doh.opendns.com",
        "dns.adguard.com", "dns.nextdns.io", "abc123.dns.nextdns.io", "mozilla.cloudflare-dns.com",
        "chrome.cloudflare-dns.com", "doh.cleanbrowsing.org", "dns.alidns.com", "doh.pub", "*.quad9.net",
        "*.opendns.com", "*.one.one", "*.cloudflare-dns.com"}) {
    EXPECT_NE(doh_host(pattern(text)), "") << text;
  }
  for (const char* text : {"www.quad9.net", "quad9.net", "example.com", "notdns.google.test", "xdns.google",
                           "*.example.com", "*.wild.test"}) {
    EXPECT_EQ(doh_host(pattern(text)), "") << text;
  }
}

}  // namespace
}  // namespace sallyport::config
