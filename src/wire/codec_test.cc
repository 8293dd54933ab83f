#include "wire/codec.h"

#include <gtest/gtest.h>

namespace sallyport::wire {
namespace {

enum class Colour : std::uint8_t { Red, Green };

std::string sample() {
  Writer out;
  out.u8(0xab).u16(0x1234).u32(0xdeadbeef).u64(0x0102030405060708).string("text").enumerator(Colour::Green);
  return out.take();
}

void read_sample(Reader& in) {
  in.u8();
  in.u16();
  in.u32();
  in.u64();
  in.string(4);
  in.enumerator(Colour::Green);
}

TEST(Codec, ReadsBackWhatWasWritten) {
  const std::string bytes = sample();
  Reader in(bytes);
  EXPECT_EQ(in.u8(), 0xab);
  EXPECT_EQ(in.u16(), 0x1234);
  EXPECT_EQ(in.u32(), 0xdeadbeef);
  EXPECT_EQ(in.u64(), 0x0102030405060708U);
  EXPECT_EQ(in.string(4), "text");
  EXPECT_EQ(in.enumerator(Colour::Green), Colour::Green);
  EXPECT_TRUE(in.finished());
}

TEST(Codec, NumbersAreBigEndian) {
  Writer out;
  EXPECT_EQ(out.u32(0x01020304).take(), std::string("\x01\x02\x03\x04"));
}

TEST(Codec, RefusesEveryTruncationAndAnExtraByte) {
  const std::string bytes = sample();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Reader in(std::string_view(bytes).substr(0, size));
    read_sample(in);
    EXPECT_FALSE(in.finished()) << size;
  }
  const std::string longer = bytes + "x";
  Reader in(longer);
  read_sample(in);
  EXPECT_TRUE(in.ok());
  EXPECT_FALSE(in.finished());
}

TEST(Codec, AStringOverItsLimitOrItsPacketIsRefused) {
  const std::string bytes = Writer().string("text").take();
  Reader limited(bytes);
  EXPECT_EQ(limited.string(3), "");
  EXPECT_FALSE(limited.ok());

  const std::string lie = Writer().u32(0xffffffff).take() + "abc";
  Reader lied_to(lie);
  EXPECT_EQ(lied_to.string(SIZE_MAX), "");
  EXPECT_FALSE(lied_to.ok());
}

TEST(Codec, ACountThatCannotBeTrueIsRefused) {
  const std::string over_limit = Writer().u32(3).take() + "abc";
  EXPECT_EQ(Reader(over_limit).count(2), 0U);
  const std::string over_rest = Writer().u32(4).take() + "abc";
  EXPECT_EQ(Reader(over_rest).count(100), 0U);
  EXPECT_EQ(Reader(over_limit).count(3), 3U);
}

TEST(Codec, FlagsAndEnumsAreRefusedOutOfRange) {
  Reader flag("\x02");
  flag.flag();
  EXPECT_FALSE(flag.ok());
  Reader colour("\x02");
  EXPECT_EQ(colour.enumerator(Colour::Green), Colour::Red);
  EXPECT_FALSE(colour.ok());
}

TEST(Codec, AfterAFailureNothingIsReadAnyMore) {
  const std::string bytes = Writer().u8(1).u8(2).take();
  Reader in(bytes);
  in.refuse();
  EXPECT_EQ(in.u8(), 0);
  EXPECT_EQ(in.string(10), "");
  EXPECT_FALSE(in.finished());
}

}  // namespace
}  // namespace sallyport::wire
