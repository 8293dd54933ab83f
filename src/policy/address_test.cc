#include "policy/address.h"

#include <gtest/gtest.h>

#include <vector>

namespace sallyport::policy {
namespace {

struct ClassCase {
  const char* address;
  AddressClass expected;
};

void expect_classes(const std::vector<ClassCase>& cases) {
  for (const ClassCase& c : cases) {
    const auto address = IpAddress::parse(c.address);
    ASSERT_TRUE(address) << c.address;
    EXPECT_EQ(classify(*address), c.expected) << c.address;
  }
}

TEST(AddressClass, OfIpv4AtBothEdgesOfEveryRange) {
  using enum AddressClass;
  expect_classes({
      {"0.0.0.0", Forbidden},
      {"0.255.255.255", Forbidden},
      {"1.0.0.0", Global},
      {"9.255.255.255", Global},
      {"10.0.0.0", Private},
      {"10.0.0.1", Private},
      {"10.255.255.255", Private},
      {"11.0.0.0", Global},
      {"100.63.255.255", Global},
      {"100.64.0.0", Private},
      {"100.64.0.1", Private},
      {"100.100.100.199", Private},
      {"100.100.100.200", Forbidden},
      {"100.100.100.201", Private},
      {"100.127.255.255", Private},
      {"100.128.0.0", Global},
      {"126.255.255.255", Global},
      {"127.0.0.1", Forbidden},
      {"127.255.255.255", Forbidden},
      {"128.0.0.0", Global},
      {"168.63.129.15", Global},
      {"168.63.129.16", Forbidden},
      {"168.63.129.17", Global},
      {"169.253.255.255", Global},
      {"169.254.0.0", Forbidden},
      {"169.254.169.254", Forbidden},
      {"169.254.170.2", Forbidden},
      {"169.254.170.23", Forbidden},
      {"169.254.255.255", Forbidden},
      {"169.255.0.0", Global},
      {"172.15.255.255", Global},
      {"172.16.0.0", Private},
      {"172.16.0.1", Private},
      {"172.31.255.255", Private},
      {"172.32.0.0", Global},
      {"191.255.255.255", Global},
      {"192.0.0.0", Forbidden},
      {"192.0.0.1", Forbidden},
      {"192.0.0.8", Forbidden},
      {"192.0.0.9", Forbidden},
      {"192.0.0.10", Forbidden},
      {"192.0.0.170", Forbidden},
      {"192.0.0.171", Forbidden},
      {"192.0.0.192", Forbidden},
      {"192.0.0.255", Forbidden},
      {"192.0.1.0", Global},
      {"192.0.2.1", Forbidden},
      {"192.0.3.0", Global},
      {"192.31.195.255", Global},
      {"192.31.196.0", Forbidden},
      {"192.31.197.0", Global},
      {"192.52.193.0", Forbidden},
      {"192.52.194.0", Global},
      {"192.88.99.0", Forbidden},
      {"192.88.99.2", Forbidden},
      {"192.88.100.0", Global},
      {"192.167.255.255", Global},
      {"192.168.0.0", Private},
      {"192.168.255.255", Private},
      {"192.169.0.0", Global},
      {"192.175.48.0", Forbidden},
      {"192.175.49.0", Global},
      {"198.17.255.255", Global},
      {"198.18.0.1", Forbidden},
      {"198.19.255.255", Forbidden},
      {"198.20.0.0", Global},
      {"198.51.100.1", Forbidden},
      {"198.51.101.0", Global},
      {"203.0.113.1", Forbidden},
      {"203.0.114.0", Global},
      {"223.255.255.255", Global},
      {"224.0.0.1", Forbidden},
      {"239.255.255.255", Forbidden},
      {"240.0.0.1", Forbidden},
      {"255.255.255.255", Forbidden},
      {"8.8.8.8", Global},
      {"140.82.121.3", Global},
  });
}

TEST(AddressClass, OfIpv6IsGlobalOnlyInsideGlobalUnicast) {
  using enum AddressClass;
  expect_classes({
      {"::", Forbidden},
      {"::1", Forbidden},
      {"::a00:1", Forbidden},             // IPv4-compatible
      {"::ffff:10.0.0.1", Forbidden},     // IPv4-mapped
      {"::ffff:8.8.8.8", Forbidden},      // also of a public address: nothing speaks it on a wire
      {"::ffff:0:127.0.0.1", Forbidden},  // SIIT
      {"64:ff9b::a00:1", Forbidden},      // NAT64
      {"64:ff9b:1::a9fe:a9fe", Forbidden},
      {"100::1", Forbidden},  // discard-only
      {"100:0:0:1::1", Forbidden},
      {"1fff:ffff::", Forbidden},
      {"2000::", Global},
      {"2000:ffff::1", Global},
      {"2001::1", Forbidden},  // Teredo
      {"2001:0:4136:e378:8000:63bf:3fff:fdd2", Forbidden},
      {"2001:1::1", Forbidden},
      {"2001:2::1", Forbidden},
      {"2001:3::1", Forbidden},
      {"2001:4:112::1", Forbidden},
      {"2001:10::1", Forbidden},
      {"2001:20::1", Forbidden},
      {"2001:30::1", Forbidden},
      {"2001:1ff:ffff::1", Forbidden},
      {"2001:200::1", Global},
      {"2001:db7:ffff::1", Global},
      {"2001:db8::1", Forbidden},
      {"2001:db9::1", Global},
      {"2001:4860:4860::8888", Global},
      {"2002:a00:1::1", Forbidden},  // 6to4
      {"2002:a9fe:a9fe::", Forbidden},
      {"2003::1", Global},
      {"2606:50c0:8000::153", Global},
      {"2620:4f:7fff::1", Global},
      {"2620:4f:8000::1", Forbidden},
      {"2620:4f:8001::1", Global},
      {"3ffe:ffff::1", Global},
      {"3fff::1", Forbidden},
      {"3fff:fff:ffff::1", Forbidden},
      {"3fff:1000::1", Global},
      {"4000::1", Forbidden},
      {"5f00::1", Forbidden},
      {"fbff::1", Forbidden},
      {"fc00::1", Private},
      {"fd12:3456:789a::1", Private},
      {"fdff:ffff::1", Private},
      {"fd00:ec2::254", Forbidden},
      {"fd00:ec2::23", Forbidden},
      {"fd20:ce::254", Forbidden},
      {"fd00:c1::a9fe:a9fe", Forbidden},
      {"fd00:42::42", Forbidden},
      {"fe00::1", Forbidden},
      {"fe80::1", Forbidden},
      {"fe80::a9fe:a9fe", Forbidden},
      {"fec0::1", Forbidden},
      {"ff02::1", Forbidden},
      {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Forbidden},
  });
}

TEST(IpAddress, ReadsCanonicalSpellingsOnly) {
  EXPECT_EQ(IpAddress::parse("192.168.0.1")->str(), "192.168.0.1");
  EXPECT_EQ(IpAddress::parse("2001:DB8:0:0::1")->str(), "2001:db8::1");
  EXPECT_EQ(IpAddress::parse("::ffff:10.0.0.1")->family, Family::V6);
  for (std::string_view text : {"", "127.1", "127.0.0.01", "0177.0.0.1", "0x7f.0.0.1", "2130706433",
                                "256.0.0.1", "1.2.3.4.", " 1.2.3.4", "1.2.3.4 ", "1.2.3.4/8", "[::1]",
                                "fe80::1%lo", ":::", "1::2::3", "12345::", "::1.2.3", "example.com"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(IpAddress::parse(std::string(1000, '1')));
}

TEST(PinnedAddress, HasAnAddressAndPerhapsAPort) {
  const auto plain = parse_pinned_address("10.1.2.3");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->address.str(), "10.1.2.3");
  EXPECT_EQ(plain->port, std::nullopt);
  EXPECT_EQ(parse_pinned_address("10.1.2.3:8443")->port, 8443);
  EXPECT_EQ(parse_pinned_address("::1")->address.str(), "::1");
  EXPECT_EQ(parse_pinned_address("::1")->port, std::nullopt);
  const auto bracketed = parse_pinned_address("[2001:db8::1]:443");
  ASSERT_TRUE(bracketed);
  EXPECT_EQ(bracketed->address.str(), "2001:db8::1");
  EXPECT_EQ(bracketed->port, 443);
  for (const char* text :
       {"", "10.1.2.3:", "10.1.2.3:0", "10.1.2.3:65536", "10.1.2.3:https", "10.1:443", "[::1]",
        "[::1]:", "[10.1.2.3]:443", "[::1:443", "::1]:443", "forge.test", "forge.test:443"}) {
    EXPECT_FALSE(parse_pinned_address(text)) << text;
  }
}

}  // namespace
}  // namespace sallyport::policy
