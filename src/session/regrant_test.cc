#include "session/regrant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

// A workspace that is mounted, with a policy in it, and the operator's file beside it.
class RegrantTest : public testing::Test {
 protected:
  RegrantTest() : folder_(fs::canonical(test_folder_.path())) {
    fs::create_directory(folder_ / "work");
    sources_.policy_path = put("work/sallyport.toml",
                               "version = 1\n[[git]]\nrepo = \"forge.test/acme/widget\"\naccess = \"fetch\"\n"
                               "credential = \"forge\"\n");
    sources_.config_path = folder_ / "config.toml";
    sources_.trust_folder = folder_ / "trust";
    put_config("token");
    running_.mounts.emplace_back().path = folder_ / "work";
  }

  std::string put(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return path;
  }
  void put_config(const std::string& token) const {
    put("config.toml", "version = 1\n[credential.forge]\nsource = { file = \"" + (folder_ / token).string() +
                           "\" }\n[[approve]]\nrepo = \"forge.test/acme/widget\"\naccess = \"fetch\"\n"
                           "credential = \"forge\"\n");
  }
  std::string error() const {
    auto plan = plan_grant_again(sources_, running_);
    return plan ? "" : plan.error();
  }

  sandbox::TestFolder test_folder_;
  fs::path folder_;
  config::Sources sources_;
  Plan running_;
};

TEST_F(RegrantTest, ReadsBothFilesAsStrictlyAsAtTheStart) {
  const auto plan = plan_grant_again(sources_, running_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->grant.git.size(), 1U);
  put("work/sallyport.toml", "version = 1\n[[git]]\nrepo = 3\n");
  EXPECT_THAT(error(), HasSubstr("sallyport.toml:3:8: "));
}

TEST_F(RegrantTest, ACredentialBeyondWhatIsApprovedNeedsConsent) {
  put("work/sallyport.toml",
      "version = 1\n[[git]]\nrepo = \"forge.test/acme/*\"\naccess = \"fetch\"\n"
      "credential = \"forge\"\n");
  EXPECT_THAT(error(), HasSubstr("sallyport policy trust"));
}

TEST_F(RegrantTest, DoesNotBelieveAPolicyThatTheSandboxMayHaveMade) {
  running_.guard.absent.push_back(
      {.folder = 0, .name = "sallyport.toml", .answer = sandbox::AbsentPlace::Answer::Report});
  EXPECT_THAT(error(), HasSubstr("was made while the sandbox runs"));
  fs::remove(sources_.policy_path);
  EXPECT_EQ(error(), "");
}

TEST_F(RegrantTest, TakesNoCredentialThatTheSandboxCouldRead) {
  put_config("work/token");
  EXPECT_THAT(error(), HasSubstr("work/token"));
}

TEST_F(RegrantTest, WhoAsksOfASessionThatHasEndedIsTold) {
  Regrant regrant({.plan = [this] { return plan_grant_again(sources_, running_); }, .on_notice = {}});
  std::vector<std::string> told;
  const auto note = [&](const Regranted& done) { told.push_back(done.problem); };
  regrant.ask(note);  // it has not begun
  EXPECT_THAT(told, ElementsAre());
  regrant.end();
  regrant.ask(note);
  EXPECT_THAT(told, ElementsAre("the session has ended", "the session has ended"));
}

}  // namespace
}  // namespace sallyport::session
