#include "container/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/fake_docker.h"

namespace sallyport::container {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HostTest : public FakeDocker {
 protected:
  HostTest() { host_.emplace(loop_, Settings{path_, folder_ + "/containers", "mark"}); }
  ~HostTest() override { host_.reset(); }

  // What a waiter is told; "" when it is ready.
  std::string wait() {
    std::string told = "never called";
    const engine::Call call = host_->when_ready([&](const Status& ready) {
      told = ready ? "" : ready.error().detail;
      stop();
    });
    run();
    return told;
  }
  void leave(const std::string& id, const std::string& session, const std::string& mark = "mark") {
    containers_[id] = {.name = id,
                       .asked = {{"Labels", {{kDaemonLabel, mark}, {kSessionLabel, session}}}},
                       .waiter = nullptr};
  }
  // Until so many requests of that kind came, and were answered.
  void run_until(const std::string& words, std::size_t count) {
    on_request_ = [this, words, count](const std::string&) {
      if (asked(words) >= count) in_turns({[] {}, [] {}, [this] { stop(); }});
    };
    if (asked(words) < count) run();
    on_request_ = nullptr;
  }

  std::optional<Host> host_;
};

TEST_F(HostTest, AsksNothingBeforeSomebodyWants) {
  start_docker();
  host_->recover();
  in_turns({[] {}, [this] { stop(); }});
  run();
  EXPECT_THAT(requests_, ElementsAre());
}

TEST_F(HostTest, IsReadyOnceTheEngineIsKnownAndHasOurImage) {
  start_docker();
  EXPECT_EQ(wait(), "");
  EXPECT_EQ(host_->info().version, "20.10.24");
  EXPECT_THAT(host_->pause_image(), StartsWith("sallyport/pause:"));
  EXPECT_EQ(asked("POST /images/create"), 0U);
  EXPECT_EQ(wait(), "");
  EXPECT_EQ(asked("GET /version"), 1U);
  EXPECT_EQ(asked("GET /images/sallyport"), 2U) << "it may have gone meanwhile";
}

TEST_F(HostTest, ImportsOurImageWheneverItIsNotThere) {
  start_docker();
  for (int times = 1; times <= 2; ++times) {
    has_pause_image_ = false;
    EXPECT_EQ(wait(), "");
    EXPECT_TRUE(has_pause_image_);
    EXPECT_EQ(asked("POST /images/create"), static_cast<std::size_t>(times));
  }
}

TEST_F(HostTest, TellsAllThatWait) {
  start_docker();
  int told = 0;
  const auto count = [&](const Status& ready) {
    EXPECT_TRUE(ready);
    if (++told == 2) stop();
  };
  const engine::Call first = host_->when_ready(count);
  engine::Call dropped = host_->when_ready([](const Status&) { ADD_FAILURE() << "nobody waits"; });
  const engine::Call second = host_->when_ready(count);
  dropped.reset();
  run();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(asked("GET /version"), 1U);
}

TEST_F(HostTest, MayBeToldInAWaitersOwnEnd) {
  start_docker();
  engine::Call first;
  engine::Call second = host_->when_ready([&](const Status&) {
    first.reset();
    second.reset();
    stop();
  });
  first = host_->when_ready([](const Status&) { ADD_FAILURE() << "it was dropped"; });
  run();
}

TEST_F(HostTest, TriesAgainAfterAFailure) {
  EXPECT_THAT(wait(), HasSubstr("docker.sock"));
  start_docker();
  for (const char* words : {"GET /version", "GET /info", "GET /images/sallyport"}) {
    answers_ = {{words, Answer::Refusal}};
    EXPECT_NE(wait(), "") << words;
  }
  answers_ = {{"POST /images/create", Answer::Refusal}};
  has_pause_image_ = false;
  EXPECT_THAT(wait(), HasSubstr("no, says the test"));
  answers_.clear();
  EXPECT_EQ(wait(), "");
}

TEST_F(HostTest, RemovesContainersThatAreNobodys) {
  start_docker();
  leave("of-a-dead-daemon", "old");
  leave("live", "new");
  leave("nameless", "");
  host_->add("new");
  EXPECT_EQ(wait(), "");
  run_until("DELETE ", 2);
  EXPECT_EQ(containers_.size(), 1U);
  EXPECT_TRUE(containers_.contains("live"));
  const auto list = std::ranges::find_if(
      requests_, [](const std::string& line) { return line.starts_with("GET /containers/json"); });
  ASSERT_NE(list, requests_.end());
  EXPECT_THAT(*list, HasSubstr("org.sallyport.daemon%3Dmark"));

  host_->drop("new");
  host_->sweep();
  run_until("DELETE ", 3);
  EXPECT_TRUE(containers_.empty());
}

TEST_F(HostTest, RemovesAgainWhatCouldNotBeRemoved) {
  start_docker();
  EXPECT_EQ(wait(), "");
  run_until("GET /containers/json", 1);
  leave("stubborn", "old");
  answers_ = {{"DELETE ", Answer::Refusal}};
  host_->sweep();
  run_until("DELETE ", 1);
  answers_.clear();
  run_until("DELETE ", 2);  // by itself, after a while
  EXPECT_TRUE(containers_.empty());
}

TEST_F(HostTest, TakesAwayTheFilesOfADaemonThatWasKilled) {
  start_docker();
  std::filesystem::create_directories(folder_ + "/containers/0123/deep");
  leave("left", "old");
  host_->recover();
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/containers"));
  run_until("DELETE ", 1);
  EXPECT_TRUE(containers_.empty());
}

TEST_F(HostTest, MayGoAtAnyTime) {
  start_docker();
  const engine::Call call = host_->when_ready([](const Status&) { ADD_FAILURE() << "it is gone"; });
  in_turns({[this] { stop(); }});
  run();
  host_->sweep_later();
}

}  // namespace
}  // namespace sallyport::container
