#include "policy/address.h"

#include <gtest/gtest.h>

#include <string>

namespace sallyport::policy {
namespace {

using enum AddressClass;

// One range of the registries and extras, and what its neighbours are.
struct RangeCase {
  const char* first;
  std::size_t bits;
  AddressClass expected;
  AddressClass before = Global;
  AddressClass after = Global;
};

IpAddress ip(const char* text) {
  return IpAddress::parse(text).value();
}

std::size_t size_of(Family family) {
  return family == Family::V4 ? 4 : 16;
}

// The next address, or the one before; from either end it goes on at the other.
IpAddress neighbour(IpAddress address, int step) {
  for (std::size_t i = size_of(address.family); i-- > 0;) {
    std::uint8_t& byte = address.bytes.at(i);
    byte = static_cast<std::uint8_t>(byte + step);
    if (byte != (step > 0 ? 0 : 0xff)) break;
  }
  return address;
}

IpAddress last_of(const RangeCase& range) {
  IpAddress address = ip(range.first);
  for (std::size_t bit = range.bits; bit < size_of(address.family) * 8; ++bit) {
    address.bytes.at(bit / 8) |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
  }
  return address;
}

void expect_edges(const RangeCase& range) {
  const IpAddress first = ip(range.first);
  const IpAddress last = last_of(range);
  const std::string what = std::string(range.first) + "/" + std::to_string(range.bits);
  EXPECT_EQ(classify(first), range.expected) << what << " first";
  EXPECT_EQ(classify(last), range.expected) << what << " last";
  EXPECT_EQ(classify(neighbour(first, -1)), range.before) << what << " before";
  EXPECT_EQ(classify(neighbour(last, 1)), range.after) << what << " after";
}

constexpr RangeCase kV4Cases[] = {
    {"0.0.0.0", 8, Forbidden, Forbidden},  // before it: 255.255.255.255
    {"10.0.0.0", 8, Private},
    {"100.64.0.0", 10, Private},
    {"100.100.100.200", 32, Forbidden, Private, Private},
    {"127.0.0.0", 8, Forbidden},
    {"168.63.129.16", 32, Forbidden},
    {"169.254.0.0", 16, Forbidden},
    {"172.16.0.0", 12, Private},
    {"192.0.0.0", 24, Forbidden},
    {"192.0.0.0", 29, Forbidden, Global, Forbidden},
    {"192.0.0.8", 32, Forbidden, Forbidden, Forbidden},
    {"192.0.0.9", 32, Forbidden, Forbidden, Forbidden},
    {"192.0.0.10", 32, Forbidden, Forbidden, Forbidden},
    {"192.0.0.170", 31, Forbidden, Forbidden, Forbidden},
    {"192.0.2.0", 24, Forbidden},
    {"192.31.196.0", 24, Forbidden},
    {"192.52.193.0", 24, Forbidden},
    {"192.88.99.0", 24, Forbidden},
    {"192.168.0.0", 16, Private},
    {"192.175.48.0", 24, Forbidden},
    {"198.18.0.0", 15, Forbidden},
    {"198.51.100.0", 24, Forbidden},
    {"203.0.113.0", 24, Forbidden},
    {"224.0.0.0", 4, Forbidden, Global, Forbidden},
    {"240.0.0.0", 4, Forbidden, Forbidden, Forbidden},  // after it: 0.0.0.0
    {"255.255.255.255", 32, Forbidden, Forbidden, Forbidden},
};

constexpr RangeCase kV6Cases[] = {
    {"::", 128, Forbidden, Forbidden, Forbidden},
    {"::1", 128, Forbidden, Forbidden, Forbidden},
    {"::", 96, Forbidden, Forbidden, Forbidden},
    {"::ffff:0:0", 96, Forbidden, Forbidden, Forbidden},
    {"::ffff:0:0:0", 96, Forbidden, Forbidden, Forbidden},
    {"64:ff9b::", 96, Forbidden, Forbidden, Forbidden},
    {"64:ff9b:1::", 48, Forbidden, Forbidden, Forbidden},
    {"100::", 64, Forbidden, Forbidden, Forbidden},
    {"100:0:0:1::", 64, Forbidden, Forbidden, Forbidden},
    {"2000::", 16, Global, Forbidden, Forbidden},  // Teredo is next
    {"2001::", 23, Forbidden},
    {"2001::", 32, Forbidden, Global, Forbidden},
    {"2001:1::1", 128, Forbidden, Forbidden, Forbidden},
    {"2001:1::2", 128, Forbidden, Forbidden, Forbidden},
    {"2001:1::3", 128, Forbidden, Forbidden, Forbidden},
    {"2001:2::", 48, Forbidden, Forbidden, Forbidden},
    {"2001:3::", 32, Forbidden, Forbidden, Forbidden},
    {"2001:4:112::", 48, Forbidden, Forbidden, Forbidden},
    {"2001:10::", 28, Forbidden, Forbidden, Forbidden},
    {"2001:20::", 28, Forbidden, Forbidden, Forbidden},
    {"2001:30::", 28, Forbidden, Forbidden, Forbidden},
    {"2001:db8::", 32, Forbidden},
    {"2002::", 16, Forbidden},
    {"2620:4f:8000::", 48, Forbidden},
    {"3fff::", 20, Forbidden},
    {"3fff:1000::", 20, Global, Forbidden, Global},
    {"4000::", 3, Forbidden, Global, Forbidden},  // the rest of the space is not assigned
    {"5f00::", 16, Forbidden, Forbidden, Forbidden},
    {"fc00::", 7, Private, Forbidden, Forbidden},
    {"fd00:ec2::", 32, Forbidden, Private, Private},
    {"fd00:42::42", 128, Forbidden, Private, Private},
    {"fd00:c1::a9fe:a9fe", 128, Forbidden, Private, Private},
    {"fd20:ce::254", 128, Forbidden, Private, Private},
    {"fe80::", 10, Forbidden, Forbidden, Forbidden},
    {"fec0::", 10, Forbidden, Forbidden, Forbidden},
    {"ff00::", 8, Forbidden, Forbidden, Forbidden},  // after it: ::
};

TEST(AddressClass, OfEveryRangeAtItsEdgesAndBesideThem) {
  for (const RangeCase& range : kV4Cases) expect_edges(range);
  for (const RangeCase& range : kV6Cases) expect_edges(range);
}

TEST(AddressClass, OfPublicAddressesIsGlobal) {
  for (const char* address : {"1.1.1.1", "8.8.8.8", "140.82.121.3", "2001:4860:4860::8888",
                              "2606:50c0:8000::153", "2a00:1450::1"}) {
    EXPECT_EQ(classify(ip(address)), Global) << address;
  }
}

TEST(AddressClass, OfAnAddressThatHidesAnotherIsForbiddenWhateverItHides) {
  for (const char* address : {"::10.0.0.1", "::8.8.8.8", "::ffff:10.0.0.1", "::ffff:8.8.8.8",
                              "::ffff:0:127.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a9fe:a9fe", "2002:a00:1::1",
                              "2002:808:808::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"}) {
    EXPECT_EQ(classify(ip(address)), Forbidden) << address;
  }
}

TEST(AddressClass, OfMetadataServicesIsForbidden) {
  for (const char* address : {"169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200",
                              "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
                              "fd00:c1::a9fe:a9fe", "fd00:42::42", "fe80::a9fe:a9fe"}) {
    EXPECT_EQ(classify(ip(address)), Forbidden) << address;
  }
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
