// With containers of a fake engine that are real processes in real namespaces. What a real engine makes of
// it is tested in tests/e2e.

#include "container/container_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/fake_docker.h"
#include "os/links.h"

namespace sallyport::container {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kSession[] = "0123456789abcdef0123456789abcdef";
constexpr char kPause[] = "sallyport-0123456789ab-pause";
constexpr char kWorkload[] = "sallyport-0123456789ab";

class ContainerRuntimeTest : public FakeDocker {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "namespaces without a user namespace need root";
    runtime_.reset();
    host_.emplace(loop_, Settings{path_, folder_ + "/containers", "mark"});
    start_docker();
    make();
  }
  void TearDown() override {
    runtime_.reset();
    host_.reset();
  }

  void make() {
    runtime_ = std::make_unique<ContainerRuntime>(loop_, *host_,
                                                  ContainerRuntime::Wish{.session = kSession,
                                                                         .image = "tools",
                                                                         .ids = {.uid = 1000, .gid = 1000},
                                                                         .home = "/home/me",
                                                                         .limits = {},
                                                                         .set_environment = {}},
                                                  [this](const std::string& how) {
                                                    EXPECT_TRUE(answered_) << "before start() had answered";
                                                    how_ = how;
                                                    ++ends_;
                                                    stop();
                                                  });
  }
  // As far as it comes; true when it stands.
  bool build() {
    answered_ = false;
    runtime_->make_namespaces([this](const Status& made) {
      if (!made) return failed(made.error());
      auto links = os::list_links(runtime_->namespaces().link_query.get());
      EXPECT_TRUE(links && os::only_loopback(*links));
      runtime_->start({.profile = profile_, .mounts = mounts_}, [this](Result<Fd> control) {
        if (!control) return failed(control.error());
        answered_ = true;
        control_ = std::move(*control);
        stop();
      });
    });
    run();
    return static_cast<bool>(control_);
  }
  void failed(const Error& error) {
    EXPECT_EQ(error_, "") << "told twice";
    error_ = error.detail;
    answered_ = true;
    stop();
  }
  // As a session does in the end, whatever came before.
  void kill() {
    answered_ = true;
    if (!runtime_->kill()) return;
    if (ends_ == 0) run();
  }
  void expect_nothing_left() {
    EXPECT_TRUE(containers_.empty());
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/containers/0123456789abcdef"));
    EXPECT_FALSE(runtime_->kill());
    EXPECT_LE(ends_, 1);
  }

  std::optional<Host> host_;
  std::unique_ptr<ContainerRuntime> runtime_;
  sandbox::ProfileInput profile_{.ids = {.uid = 1000, .gid = 1000}, .home = "/home/me"};
  std::vector<sandbox::Mount> mounts_;
  Fd control_;
  bool answered_ = false;
  std::string error_;
  std::string how_;
  int ends_ = 0;
};

TEST_F(ContainerRuntimeTest, StandsAndEnds) {
  ASSERT_TRUE(build()) << error_;
  EXPECT_EQ(containers_.size(), 2U);
  EXPECT_THAT(runtime_->identity(), HasSubstr("container id2, pause id1, image tools (sha256:"));
  EXPECT_THAT(runtime_->identity(), HasSubstr("pid " + std::to_string(named(kWorkload)->pid) + " "));
  EXPECT_THAT(runtime_->environment({"OURS=1"}), ::testing::IsSupersetOf({"A=b", "OURS=1", "PATH=/bin"}));
  EXPECT_EQ(ends_, 0);
  EXPECT_TRUE(runtime_->kill());
  run();
  EXPECT_EQ(ends_, 1);
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, OpensDoorsInTheNetworkOfThePause) {
  ASSERT_TRUE(build()) << error_;
  auto doors = runtime_->open_doors(std::nullopt);
  ASSERT_TRUE(doors) << doors.error().detail;
  EXPECT_EQ(doors->mode, os::DoorMode::Redirect);
  kill();
}

TEST_F(ContainerRuntimeTest, EndsWithEitherOfTheTwo) {
  for (const char* suffix : {"-pause", "0123456789ab"}) {
    make();
    control_.reset();
    ends_ = 0;
    ASSERT_TRUE(build()) << error_;
    end(*named(suffix));
    run();
    EXPECT_EQ(ends_, 1);
    EXPECT_THAT(how_, AnyOf(HasSubstr("-pause, ended"), HasSubstr("89ab, ended")));
    expect_nothing_left();
  }
}

TEST_F(ContainerRuntimeTest, LeavesNothingWhateverIsRefused) {
  for (const std::string& words :
       {std::string("GET /version"), std::string("GET /images/tools"),
        "POST /containers/create?name=" + std::string(kPause), std::string("POST /containers/id1/start"),
        std::string("GET /containers/id1/json"), std::string("POST /containers/id2/start"),
        std::string("GET /containers/id2/json"), "POST /containers/create?name=" + std::string(kWorkload)}) {
    SCOPED_TRACE(words);
    runtime_.reset();
    host_.emplace(loop_, Settings{path_, folder_ + "/containers", "mark"});
    error_.clear();
    control_.reset();
    ends_ = 0;
    made_ = 0;
    answers_ = {{words, Answer::Refusal}};
    if (words.ends_with("create?name=" + std::string(kWorkload))) answers_[words + "-pause"] = Answer::Now;
    make();
    EXPECT_FALSE(build());
    EXPECT_NE(error_, "");
    answers_.clear();
    kill();
    expect_nothing_left();
    runtime_.reset();
  }
}

// The runtime is asked to end while each of its requests is on the way, and when the engine has answered it.
TEST_F(ContainerRuntimeTest, CanBeEndedAtEveryStep) {
  ASSERT_TRUE(build()) << error_;
  kill();
  const std::size_t steps = requests_.size();
  ASSERT_GT(steps, 10U);
  for (std::size_t step = 1; step < steps; ++step) {
    for (const Answer answer : {Answer::Now, Answer::Later}) {
      SCOPED_TRACE(step);
      runtime_.reset();
      host_.emplace(loop_, Settings{path_, folder_ + "/containers", "mark"});
      requests_.clear();
      control_.reset();
      ends_ = 0;
      error_.clear();
      make();
      bool killed = false;
      bool will_end = true;
      on_request_ = [&](const std::string& line) {
        if (requests_.size() != step || killed) return;
        answers_ = {{line, answer}};
        killed = true;
        in_turns({[&] {
          answers_.clear();
          answered_ = true;
          will_end = runtime_->kill();
          answer_held();
          if (!will_end) stop();
        }});
      };
      build();
      on_request_ = nullptr;
      if (!killed) will_end = runtime_->kill();  // there are not as many requests before its end
      if (will_end && ends_ == 0) run();
      EXPECT_EQ(ends_, will_end ? 1 : 0);
      expect_nothing_left();
      runtime_.reset();
    }
  }
}

TEST_F(ContainerRuntimeTest, TellsThatAContainerEndedBeforeItCame) {
  never_connects_ = true;
  on_request_ = [this](const std::string& line) {
    if (line.contains("/wait")) in_turns({[this] { end(*named("-pause")); }});
  };
  EXPECT_FALSE(build());
  EXPECT_THAT(error_, HasSubstr("-pause ended with exit code 137 before it was ready"));
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, TakesOneThatComesBeforeTheEngineSaysItStarted) {
  starts_slowly_ = true;
  const auto answer_late = [this](const std::string&) {
    loop_.after(std::chrono::milliseconds(200), [this] {
      for (auto& connection : std::exchange(late_, {})) connection->send("HTTP/1.1 204 x\r\n\r\n");
    });
  };
  on_request_ = [&](const std::string& line) {
    if (line.ends_with("/start")) answer_late(line);
  };
  EXPECT_TRUE(build()) << error_;
  EXPECT_EQ(asked("POST /containers/id1/wait"), 0U) << "it is there";
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, BelievesNoEngineThatMadeSomethingElse) {
  namespace json = boost::json;
  const struct {
    const char* pointer;
    json::value value;
    const char* words;
  } cases[] = {
      {"/Id", "another", "told of another container"},
      {"/State/Pid", 1, "is the engine on another host"},
      {"/State/Running", false, "is the engine on another host"},
      {"/HostConfig/Privileged", true, "Privileged is true"},
      {"/HostConfig/CapDrop", json::array{}, "CapDrop is []"},
      {"/HostConfig/SecurityOpt", json::array{"no-new-privileges"}, "no seccomp profile"},
      {"/HostConfig/PidMode", "host", "PidMode is \"host\""},
      {"/HostConfig/NetworkMode", "bridge", "NetworkMode is \"bridge\""},
      {"/Config/User", "0:0", "User is root"},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.pointer);
    error_.clear();
    ends_ = 0;
    make();
    bend_ = [&](json::value& state) { state.at_pointer(each.pointer) = each.value; };
    EXPECT_FALSE(build());
    EXPECT_THAT(error_, HasSubstr(each.words));
    kill();
    expect_nothing_left();
  }
}

// What an adopted container may not have: the state of a daemon lies in /var/lib/sallyport.
TEST_F(ContainerRuntimeTest, HasItsOwnFilesWhereverTheyLie) {
  char folder[] = "/root/sallyport-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  runtime_.reset();
  host_.emplace(loop_, Settings{path_, folder, "mark"});
  make();
  EXPECT_TRUE(build()) << error_;
  kill();
  EXPECT_TRUE(std::filesystem::remove(folder)) << "it is empty again";
}

TEST_F(ContainerRuntimeTest, BelievesNoEngineThatMountsMore) {
  bend_ = [](boost::json::value& state) {
    state.at("Mounts").as_array().push_back({{"Type", "bind"},
                                             {"Source", "/var/lib/sallyport"},
                                             {"Destination", "/x"},
                                             {"RW", true},
                                             {"Propagation", "private"}});
  };
  EXPECT_FALSE(build());
  EXPECT_THAT(error_, HasSubstr("gives away /var/lib/sallyport of the host"));
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, RefusesAWorkloadThatJoinedAnotherNetwork) {
  bend_ = [](boost::json::value& state) {
    if (state.at("Id").as_string() == "id2") state.at_pointer("/HostConfig/NetworkMode") = "container:other";
  };
  EXPECT_FALSE(build());
  EXPECT_THAT(error_, HasSubstr("joined another network"));
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, RefusesAnImageThatCoversOurProgram) {
  covers_program_ = true;
  EXPECT_FALSE(build());
  EXPECT_THAT(error_, HasSubstr("keeps sallyport-init from being the first program"));
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, SaysHowToGetAnImage) {
  image_ = "";
  EXPECT_FALSE(build());
  EXPECT_THAT(error_, HasSubstr("`docker pull tools`"));
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, RefusesAnImageWithAVolumeInTheWorkspace) {
  sandbox::Mount work;
  work.source.reset(::open("/tmp", O_PATH | O_CLOEXEC));
  work.path = "/tmp";
  mounts_.push_back(std::move(work));
  image_ = R"({"Id":"sha256:image","Config":{"Volumes":{"/data":{},"/tmp/../tmp//x":{}}}})";
  EXPECT_FALSE(build());
  EXPECT_THAT(error_, HasSubstr("wants a volume at"));
  kill();
  expect_nothing_left();
}

TEST_F(ContainerRuntimeTest, EndsAlthoughTheEngineRemovesNothing) {
  ASSERT_TRUE(build()) << error_;
  answers_ = {{"DELETE ", Answer::Refusal}};
  kill();
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(containers_.size(), 2U);
  answers_.clear();
  host_->sweep();
  on_request_ = [this](const std::string& line) {
    if (line.starts_with("DELETE ") && containers_.size() == 1) in_turns({[this] { stop(); }});
  };
  run();
  EXPECT_TRUE(containers_.empty());
}

TEST_F(ContainerRuntimeTest, TakesEverythingAlongWhenItIsDropped) {
  ASSERT_TRUE(build()) << error_;
  const pid_t pids[] = {named("-pause")->pid, named(kWorkload)->pid};
  runtime_.reset();
  for (const pid_t pid : pids) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  for (auto& [id, container] : containers_) container.pid = 0;
  on_request_ = [this](const std::string& line) {
    if (line.starts_with("DELETE ") && containers_.size() == 1) in_turns({[this] { stop(); }});
  };
  run();
  EXPECT_TRUE(containers_.empty());
  EXPECT_EQ(ends_, 0);
}

}  // namespace
}  // namespace sallyport::container
