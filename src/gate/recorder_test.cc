#include "gate/recorder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "wire/messages.h"

namespace sallyport::gate {
namespace {

// A control socket whose other end is this test.
class FakeChannel final : public net::PacketChannel {
 public:
  net::Task<Result<std::optional<os::Packet>>> receive() override { co_return std::nullopt; }
  void close() noexcept override {}
  Status send(std::string bytes, std::vector<Fd> /*fds*/) override {
    if (full) return fail(Reason::Overloaded, "full");
    const auto message = wire::decode_from_gate(bytes);
    sent.push_back(std::get<wire::AuditAppend>(*message));
    return {};
  }

  bool full = false;
  std::vector<wire::AuditAppend> sent;
};

audit::Event event_named(std::string detail) {
  audit::Event event;
  event.detail = std::move(detail);
  return event;
}

class RecorderTest : public ::testing::Test {
 protected:
  // Starts record() and lets it go as far as it can. The outcome appears in `outcomes_`.
  void start(std::string detail) {
    worker_.spawn("test", record(event_named(std::move(detail))));
    run();
  }
  void run() {
    worker_.spawn("stop", stop());
    worker_.run();
  }

  net::Worker worker_;
  FakeChannel channel_;
  Recorder recorder_{worker_, channel_};
  std::vector<Status> outcomes_;

 private:
  net::Task<> record(audit::Event event) { outcomes_.push_back(co_await recorder_.record(std::move(event))); }
  net::Task<> stop() {
    co_await worker_.sleep({});
    worker_.stop();
  }
};

TEST_F(RecorderTest, WaitsForTheWardensWordOnThatVeryEvent) {
  start("one");
  start("two");
  ASSERT_EQ(channel_.sent.size(), 2U);
  EXPECT_EQ(channel_.sent[0].event.detail, "one");
  EXPECT_LT(channel_.sent[0].number, channel_.sent[1].number);
  EXPECT_TRUE(outcomes_.empty());

  recorder_.written(channel_.sent[1].number, false);
  run();
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].error().reason, Reason::AuditUnavailable);

  recorder_.written(channel_.sent[0].number, true);
  run();
  ASSERT_EQ(outcomes_.size(), 2U);
  EXPECT_TRUE(outcomes_[1]);
}

TEST_F(RecorderTest, RefusesWhenTheEventCannotBeSent) {
  channel_.full = true;
  start("one");
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].error().reason, Reason::AuditUnavailable);
}

TEST_F(RecorderTest, RefusesWhoWaitsAndWhoComesWhenTheWardenIsGone) {
  start("one");
  recorder_.end();
  start("two");
  ASSERT_EQ(outcomes_.size(), 2U);
  EXPECT_EQ(outcomes_[0].error().reason, Reason::AuditUnavailable);
  EXPECT_EQ(outcomes_[1].error().reason, Reason::AuditUnavailable);
  EXPECT_EQ(channel_.sent.size(), 1U);
}

TEST_F(RecorderTest, HoldsABoundedNumberOfEvents) {
  for (std::size_t i = 0; i < Recorder::kMaxPending; ++i) {
    worker_.spawn("test", [](Recorder& recorder) -> net::Task<> {
      static_cast<void>(co_await recorder.record({}));
    }(recorder_));
  }
  run();
  start("one more");
  ASSERT_EQ(outcomes_.size(), 1U);
  EXPECT_EQ(outcomes_[0].error().reason, Reason::AuditUnavailable);
  EXPECT_EQ(channel_.sent.size(), Recorder::kMaxPending);
  recorder_.end();
  run();
}

TEST_F(RecorderTest, IgnoresWordOnNotesAndOnNumbersThatNeverWere) {
  recorder_.note(event_named("note"));
  recorder_.written(channel_.sent.at(0).number, true);
  recorder_.written(999, true);
  EXPECT_EQ(channel_.sent.size(), 1U);
}

TEST_F(RecorderTest, TellsHowManyNotesWereLost) {
  channel_.full = true;
  recorder_.note(event_named("a"));
  recorder_.note(event_named("b"));
  channel_.full = false;
  recorder_.note(event_named("c"));
  ASSERT_EQ(channel_.sent.size(), 2U);
  EXPECT_EQ(channel_.sent[0].event.kind, audit::Kind::Alarm);
  EXPECT_EQ(channel_.sent[0].event.detail, "2 events of the gate were lost");
  EXPECT_EQ(channel_.sent[1].event.detail, "c");
}

}  // namespace
}  // namespace sallyport::gate
