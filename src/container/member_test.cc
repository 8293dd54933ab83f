#include "container/member.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/fake_docker.h"
#include "container/specs.h"

namespace sallyport::container {
namespace {

using ::testing::HasSubstr;

class MemberTest : public FakeDocker {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "a network namespace needs root";
    host_.emplace(loop_, Settings{path_, folder_ + "/containers", "mark"});
    start_docker();
    const engine::Call ready = host_->when_ready([this](const Status&) { stop(); });
    run();
    member_ = std::make_unique<Member>(loop_, *host_, "x-pause", [this] {
      ++deaths_;
      stop();
    });
  }
  void TearDown() override {
    member_.reset();
    host_.reset();
  }
  // "" when it is ready.
  std::string launch(int net = -1) {
    std::string told = "never called";
    member_->launch(spec(), socket_, net, [&](const Result<engine::ContainerState>& state) {
      told = state ? "" : state.error().detail;
      stop();
    });
    run();
    return told;
  }
  engine::ContainerSpec spec() const {
    return pause_spec(
        {.image = "pause", .ids = {.uid = 1000, .gid = 1000}, .socket = socket_, .labels = {{"l", "v"}}});
  }
  void end() {
    member_->end([this] { stop(); });
    run();
    EXPECT_TRUE(containers_.empty());
    EXPECT_FALSE(std::filesystem::exists(socket_));
  }

  std::optional<Host> host_;
  std::string socket_ = folder_ + "/pause";
  int deaths_ = 0;
  std::unique_ptr<Member> member_;
};

TEST_F(MemberTest, IsTheProcessThatComes) {
  EXPECT_EQ(launch(), "");
  EXPECT_EQ(member_->id(), "id1");
  EXPECT_TRUE(member_->open_namespace("net"));
  EXPECT_TRUE(member_->take_control());
  EXPECT_FALSE(std::filesystem::exists(socket_)) << "nobody else is expected";
  end();
  EXPECT_EQ(deaths_, 0);
}

TEST_F(MemberTest, IsNotWhomTheEngineMeans) {
  bend_ = [](boost::json::value& state) {
    state.at_pointer("/State/Pid") = state.at_pointer("/State/Pid").as_int64() + 1;
  };
  EXPECT_THAT(launch(), HasSubstr("is the engine on another host"));
  end();
}

TEST_F(MemberTest, IsInTheNetworkThatItShouldBeIn) {
  const Fd ours(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(launch(ours.get()), HasSubstr("is in another network namespace"));
  end();
}

TEST_F(MemberTest, TellsOfItsProcesssEnd) {
  EXPECT_EQ(launch(), "");
  FakeDocker::end(*named("x-pause"));
  run();
  EXPECT_EQ(deaths_, 1);
  EXPECT_FALSE(member_->open_namespace("net"));
  end();
}

TEST_F(MemberTest, IsRemovedByAnEngineThatRefusedItAtFirst) {
  EXPECT_EQ(launch(), "");
  answers_ = {{"DELETE ", Answer::Refusal}};
  on_request_ = [this](const std::string&) {
    if (asked("DELETE ") == 2) answers_.clear();
  };
  end();
  EXPECT_EQ(asked("DELETE "), 2U);
}

TEST_F(MemberTest, CanBeEndedBeforeItWasLaunched) {
  end();
  EXPECT_EQ(asked("DELETE "), 0U);
}

TEST_F(MemberTest, TakesNoPlaceThatIsTaken) {
  auto taken = os::PacketListener::open(socket_);
  ASSERT_TRUE(taken);
  EXPECT_THAT(launch(), HasSubstr("bind"));
  EXPECT_EQ(asked("POST "), 0U);
}

}  // namespace
}  // namespace sallyport::container
