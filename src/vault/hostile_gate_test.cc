// The vault in front of a gate that is no longer ours: raw bytes on a lane. Each case ends in an error frame
// and a closed lane, and the upstream never sees what it should not.

#include <fcntl.h>

#include <array>

#include "vault/frames.h"
#include "vault/hostile_frames_test.h"
#include "vault/service_fixture.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;

class HostileGateTest : public ServiceTest {
 protected:
  // What the vault says until it closes the lane.
  struct Heard {
    std::vector<FrameHeader> frames;
    std::optional<Error> error;
    bool closed = false;
  };

  Fd new_lane(std::string_view hello = kLaneHello) {
    auto pair = os::socket_pair(os::SocketKind::Stream);
    EXPECT_TRUE(pair);
    const int fd = pair->second.get();
    EXPECT_TRUE(os::send_packet(gate_.get(), hello, {&fd, 1}));
    return std::move(pair->first);
  }

  net::Task<> send(std::string bytes, Heard& heard) {
    Frames frames(net::make_socket_stream(worker_, new_lane(), net::Peer::Vault));
    // The vault may stop reading in the middle of it.
    (void)co_await frames.stream().write_all(bytes);
    co_await hear(frames, heard);
  }

  static net::Task<> hear(Frames& frames, Heard& heard) {
    for (;;) {
      auto header = co_await frames.read_header();
      if (!header) co_return;
      heard.closed = !*header;
      if (heard.closed) co_return;
      heard.frames.push_back(**header);
      auto payload = co_await frames.read_payload((*header)->bytes);
      if (!payload) co_return;
      if ((*header)->type == FrameType::Error) heard.error = decode_error(*payload).value();
    }
  }

  void expect_refused(const Heard& heard) {
    ASSERT_TRUE(heard.error);
    EXPECT_EQ(heard.error->reason, Reason::VaultRefused) << heard.error->detail;
    EXPECT_TRUE(heard.closed);
    EXPECT_THAT(heard.error->detail, testing::Not(HasSubstr(kToken)));
  }
};

class HostileBytes : public HostileGateTest, public testing::WithParamInterface<HostileCase> {};

TEST_P(HostileBytes, AreRefused) {
  upstream_.answers = Answers::Never;
  Heard heard;
  run(send(GetParam().bytes, heard));
  expect_refused(heard);
  EXPECT_EQ(heard.frames.size(), 1U);
  EXPECT_EQ(upstream_.requests.size(), GetParam().requests);
  EXPECT_EQ(upstream_.aborted, static_cast<int>(GetParam().requests));
  EXPECT_EQ(upstream_.bodies_ended, 0);
  ASSERT_FALSE(events_.empty());
  EXPECT_EQ(events_.back().kind, audit::Kind::Alarm);
  EXPECT_EQ(events_.back().reason, Reason::VaultRefused);
}

INSTANTIATE_TEST_SUITE_P(Lane, HostileBytes, testing::ValuesIn(kHostileCases),
                         [](const auto& info) { return std::string(info.param.sentence); });

TEST_F(HostileGateTest, ASecondRequestBeforeTheAnswerIsRefusedAndNeverSent) {
  upstream_.answers = Answers::Never;
  Heard heard;
  const std::string one = head_frame(head(BodyKind::Open)) + frame(FrameType::BodyEnd, "");
  run(send(one + one, heard));
  expect_refused(heard);
  EXPECT_EQ(upstream_.requests.size(), 1U);
  EXPECT_EQ(upstream_.aborted, 1);
}

TEST_F(HostileGateTest, RequestTextInABodyStaysBody) {
  Heard heard;
  const std::string smuggled = "0\r\n\r\nPOST /acme/other HTTP/1.1\r\nHost: forge.test\r\n\r\n";
  const auto talk = [&]() -> net::Task<> {
    Frames frames(net::make_socket_stream(worker_, new_lane(), net::Peer::Vault));
    EXPECT_TRUE(co_await frames.stream().write_all(
        head_frame(head(BodyKind::Open)) + frame(FrameType::Body, smuggled) + frame(FrameType::BodyEnd, "")));
    EXPECT_TRUE(co_await frames.stream().shutdown_write());
    co_await hear(frames, heard);
  };
  run(talk());
  EXPECT_FALSE(heard.error);
  EXPECT_EQ(upstream_.body, smuggled);
  EXPECT_EQ(upstream_.requests.size(), 1U);
}

TEST_F(HostileGateTest, AHeadThatNeverEndsTimesOut) {
  LaneLimits limits;
  limits.head = std::chrono::milliseconds(1);
  start(limits);
  Heard heard;
  run(send(head_frame(head(BodyKind::Open)).substr(0, 20), heard));
  EXPECT_TRUE(heard.closed);
  EXPECT_TRUE(upstream_.requests.empty());
}

TEST_F(HostileGateTest, SilenceInsideARequestTimesOutAndAbortsIt) {
  LaneLimits limits;
  limits.silence = std::chrono::milliseconds(1);
  start(limits);
  Heard heard;
  run(send(head_frame(head(BodyKind::Open)) + frame(FrameType::Body, "x"), heard));
  EXPECT_TRUE(heard.closed);
  EXPECT_EQ(upstream_.aborted, 1);
  EXPECT_EQ(upstream_.bodies_ended, 0);
}

TEST_F(HostileGateTest, AGateThatDoesNotHangUpAfterAnErrorIsHungUpOn) {
  LaneLimits limits;
  limits.linger = std::chrono::milliseconds(1);
  start(limits);
  const auto talk = [&]() -> net::Task<> {
    Frames frames(net::make_socket_stream(worker_, new_lane(), net::Peer::Vault));
    EXPECT_TRUE(co_await frames.stream().write_all(frame(FrameType::BodyEnd, "")));
    Heard heard;
    co_await hear(frames, heard);
    EXPECT_TRUE(heard.error);
    // Until the vault's end is closed, which the next write tells.
    while (co_await frames.stream().write_all("x")) co_await worker_.sleep(std::chrono::milliseconds(1));
  };
  run(talk());
}

TEST_F(HostileGateTest, WhatIsNoLaneIsClosedAndTheNextLaneServed) {
  const auto talk = [&]() -> net::Task<> {
    // Another version; two descriptors; none; a socket of another kind.
    const Fd other_version = new_lane("sallyport lane 2");
    const Fd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const int number = device.get();
    const std::array two{number, number};
    EXPECT_TRUE(os::send_packet(gate_.get(), kLaneHello, two));
    EXPECT_TRUE(os::send_packet(gate_.get(), kLaneHello));
    EXPECT_TRUE(os::send_packet(gate_.get(), kLaneHello, {&number, 1}));
    Heard heard;
    co_await send(frame(FrameType::BodyEnd, ""), heard);
    expect_refused(heard);
  };
  run(talk());
  EXPECT_EQ(events_.size(), 5U);
}

TEST_F(HostileGateTest, CannotFillTheLogWithAlarms) {
  const auto talk = [&]() -> net::Task<> {
    for (int i = 0; i < 3 * kMaxAlarmsPerMinute; ++i) {
      Heard heard;
      co_await send(frame(FrameType::BodyEnd, ""), heard);
      expect_refused(heard);
    }
  };
  run(talk());
  // The minute may turn once while this runs.
  EXPECT_GE(events_.size(), static_cast<std::size_t>(kMaxAlarmsPerMinute));
  EXPECT_LE(events_.size(), static_cast<std::size_t>(2 * kMaxAlarmsPerMinute));
}

TEST_F(HostileGateTest, HasNoMoreLanesThanTheLimit) {
  const auto talk = [&]() -> net::Task<> {
    std::vector<Fd> lanes;
    for (std::size_t i = 0; i < kMaxLanes; ++i) lanes.push_back(new_lane());
    Frames one_too_many(net::make_socket_stream(worker_, new_lane(), net::Peer::Vault));
    Heard heard;
    co_await hear(one_too_many, heard);
    EXPECT_TRUE(heard.closed);
    EXPECT_TRUE(heard.frames.empty());
  };
  run(talk());
}

}  // namespace
}  // namespace sallyport::vault
