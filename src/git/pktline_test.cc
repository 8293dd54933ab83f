#include "git/pktline.h"

#include <gtest/gtest.h>

namespace sallyport::git {
namespace {

TEST(PktLine, ReadsEveryKind) {
  const auto kind = [](std::string_view bytes) {
    return next_pkt(bytes, Reason::BadPush).value().value().kind;
  };
  EXPECT_EQ(kind("0000x"), PktKind::Flush);
  EXPECT_EQ(kind("0001x"), PktKind::Delim);
  EXPECT_EQ(kind("0002x"), PktKind::ResponseEnd);
  EXPECT_EQ(kind("0004x"), PktKind::Data);
  const auto pkt = next_pkt("000aHello\nmore", Reason::BadPush).value().value();
  EXPECT_EQ(pkt.kind, PktKind::Data);
  EXPECT_EQ(pkt.data, "Hello\n");
  EXPECT_EQ(pkt.bytes, 10U);
  EXPECT_EQ(next_pkt("000AHello\n", Reason::BadPush).value()->data, "Hello\n");
}

TEST(PktLine, WaitsForTheRest) {
  for (const std::string_view bytes : {"", "0", "000", "000a", "000aHello", "fff0"}) {
    const auto pkt = next_pkt(bytes, Reason::BadPush);
    ASSERT_TRUE(pkt) << bytes;
    EXPECT_FALSE(*pkt) << bytes;
  }
}

TEST(PktLine, RefusesLengthsThatCannotBe) {
  for (const std::string_view bytes :
       {"0003", "fff1", "ffff", "00g0", " 004", "0x04", "+004", "-001", "000\n"}) {
    EXPECT_EQ(next_pkt(bytes, Reason::BadPush).error().reason, Reason::BadPush) << bytes;
    EXPECT_EQ(next_pkt(bytes, Reason::UpstreamMalformed).error().reason, Reason::UpstreamMalformed) << bytes;
  }
}

TEST(PktLine, WritesWhatItReads) {
  std::string out;
  append_pkt(out, "Hello\n");
  append_pkt(out, std::string(kMaxPktBytes - kPktHeadBytes, 'x'));
  EXPECT_EQ(out.substr(0, 14), "000aHello\nfff0");
  EXPECT_EQ(out.size(), 10 + kMaxPktBytes);
}

}  // namespace
}  // namespace sallyport::git
