#include "egress/relay.h"

#include <gtest/gtest.h>

#include <string>

#include "http/fake_stream.h"

namespace sallyport::egress {
namespace {

using http::FakeStream;

Relayed run(FakeStream& first, FakeStream& second, std::string early_first = {},
            std::string early_second = {}) {
  return http::run_alone(relay({first, std::move(early_first)}, {second, std::move(early_second)}));
}

TEST(Relay, MovesBothWaysWithEarlyBytesFirst) {
  FakeStream first({"a", "b"});
  FakeStream second({"c"});
  const Relayed relayed = run(first, second, "0", "1");
  EXPECT_EQ(relayed.error.reason, Reason::None);
  EXPECT_EQ(second.output, "0ab");
  EXPECT_EQ(first.output, "1c");
  EXPECT_EQ(relayed.from_first, 3U);
  EXPECT_EQ(relayed.from_second, 2U);
  EXPECT_TRUE(first.write_ended && second.write_ended);
}

TEST(Relay, MovesMoreThanOneBufferInOrder) {
  std::string big;
  for (std::size_t i = 0; i < 3 * kMaxRelayBytes + 7; ++i) big += static_cast<char>('a' + i % 23);
  FakeStream first({big});
  FakeStream second;
  EXPECT_EQ(run(first, second).from_first, big.size());
  EXPECT_EQ(second.output, big);
}

TEST(Relay, AFailureOfOneSideEndsBoth) {
  FakeStream first({"a"}, FakeStream::End::Reset);
  FakeStream second({}, FakeStream::End::Silence);
  EXPECT_EQ(run(first, second).error.reason, Reason::ClientClosed);
  EXPECT_EQ(second.output, "a");
  EXPECT_TRUE(first.closed && second.closed);
}

TEST(Relay, AReaderThatIsGoneEndsBoth) {
  FakeStream first({"a"}, FakeStream::End::Silence);
  FakeStream second({}, FakeStream::End::Silence);
  second.writes_fail = true;
  EXPECT_EQ(run(first, second).error.reason, Reason::ClientClosed);
  EXPECT_TRUE(first.closed && second.closed);
}

}  // namespace
}  // namespace sallyport::egress
