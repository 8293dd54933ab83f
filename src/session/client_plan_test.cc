// What a daemon that is root plans for another user: with that user's rights.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config/trust_store.h"
#include "os/act_as.h"
#include "os/event_loop.h"
#include "os/file_watcher.h"
#include "sandbox/folder_test.h"
#include "sandbox/git_links.h"
#include "sandbox/made_repositories.h"
#include "sandbox/workspace_watch.h"
#include "session/plan.h"

namespace sallyport::session {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

// In no user database.
const os::Ids kAnna{.uid = 23'001, .gid = 23'001, .groups = {23'100}};
constexpr uid_t kBert = 23'002;
constexpr gid_t kTeam = 23'100;

constexpr char kPolicy[] =
    "version = 1\n[[git]]\nrepo = \"github.com/acme/widget\"\naccess = \"fetch\"\ncredential = \"github\"\n";

class ClientPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can act as others";
    folder_ = fs::canonical(test_folder_.path());
    folder("work", kAnna.uid, 0700);
    folder("home", kAnna.uid, 0700);
    folder("operator", 0, 0711);
    request_.client = kAnna;
    request_.working_directory = path("work");
    request_.home = path("home");
    request_.sources.policy_path = path("work/sallyport.toml");
    request_.sources.config_path = path("operator/config.toml");
    request_.sources.trust_folder = path("home/trust");
    request_.audit_path = path("operator/audit.jsonl");
    put_config("");
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string folder(const std::string& name, uid_t uid, mode_t mode, gid_t gid = 0) const {
    fs::create_directory(path(name));
    own(name, uid, mode, gid);
    return path(name);
  }
  std::string put(const std::string& name, const std::string& text, uid_t uid, mode_t mode = 0600) const {
    std::ofstream(path(name), std::ios::binary) << text;
    own(name, uid, mode, 0);
    return path(name);
  }
  void own(const std::string& name, uid_t uid, mode_t mode, gid_t gid) const {
    EXPECT_EQ(::chown(path(name).c_str(), uid, gid == 0 ? uid : gid), 0);
    EXPECT_EQ(::chmod(path(name).c_str(), mode), 0);
  }
  void put_config(const std::string& users) const {
    put("operator/config.toml",
        "version = 1\n[[approve]]\nrepo = \"github.com/acme/*\"\naccess = \"fetch\"\ncredential = "
        "\"github\"\n"
        "[credential.github]\nsource = { file = \"" +
            path("operator/token") + "\" }\n" + users,
        0);
  }
  std::string refusal() const {
    const auto plan = make_plan(request_);
    EXPECT_FALSE(plan);
    EXPECT_FALSE(os::acting_as()) << "we are ourselves again";
    return plan ? "" : plan.error();
  }

  sandbox::TestFolder test_folder_;
  fs::path folder_;
  Request request_;
};

TEST_F(ClientPlanTest, RunsTheSandboxAsTheClient) {
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_FALSE(os::acting_as());
  EXPECT_EQ(plan->identities.sandbox.uid, kAnna.uid);
  EXPECT_EQ(plan->profile.ids.gid, kAnna.gid);
  ASSERT_TRUE(plan->identities.become_sandbox);
  EXPECT_EQ(plan->identities.become_sandbox->uid, kAnna.uid);
  EXPECT_EQ(plan->identities.become_sandbox->groups, kAnna.groups);
  EXPECT_TRUE(plan->identities.become_gate);
  EXPECT_EQ(plan->identities.home, "/home/sandbox") << "not what the request says";
}

TEST_F(ClientPlanTest, RunsItAsTheClientInAnothersWorkspaceToo) {
  own("work", kBert, 0755, 0);
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->identities.sandbox.uid, kAnna.uid);
}

TEST_F(ClientPlanTest, RefusesAWorkspaceThatTheClientCannotEnter) {
  for (const auto& [uid, mode] : {std::pair{kBert, 0700U}, {kBert, 0744U}, {0U, 0700U}, {kAnna.uid, 0600U}}) {
    own("work", uid, mode, 0);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("enter " + path("work")), HasSubstr("Permission denied")));
  }
}

TEST_F(ClientPlanTest, EntersByTheClientsGroups) {
  own("work", kBert, 0770, kTeam);
  EXPECT_TRUE(make_plan(request_));
  request_.client->groups.clear();
  EXPECT_THAT(refusal(), HasSubstr("Permission denied"));
}

TEST_F(ClientPlanTest, RefusesMountsThatTheClientCannotRead) {
  folder("roots", 0, 0700);
  folder("roots/open", 0, 0755);
  put("file", "text", kBert);
  for (const char* mount : {"roots", "roots/open", "roots/missing", "file"}) {
    request_.mounts = {path(mount) + ":ro"};
    EXPECT_THAT(refusal(), HasSubstr("Permission denied")) << mount;
  }
  request_.mounts = {"/root"};
  EXPECT_NE(refusal(), "");
}

TEST_F(ClientPlanTest, FollowsNoLinkWhereTheClientCouldNot) {
  folder("berts", kBert, 0700);
  folder("berts/open", kBert, 0755);
  fs::create_directory_symlink(path("berts/open"), path("link"));
  request_.working_directory = path("link");
  EXPECT_THAT(refusal(), HasSubstr("Permission denied"));
}

TEST_F(ClientPlanTest, DoesNotTellWhetherThereIsAPolicyWhereTheClientCannotLook) {
  folder("roots", 0, 0700);
  put("roots/policy", "version = 1\nsecret = \"canary\"\n", 0);
  request_.sources.policy = config::Presence::Named;
  request_.sources.policy_path = path("roots/policy");
  const std::string there = refusal();
  EXPECT_THAT(there, AllOf(HasSubstr("Permission denied"), Not(HasSubstr("secret"))));
  fs::remove(path("roots/policy"));
  EXPECT_EQ(refusal(), there);
  put("work/sallyport.toml", "version = 1\nsecret = 1\n", 0);
  request_.sources.policy_path = path("work/sallyport.toml");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("Permission denied"), Not(HasSubstr("secret"))));
}

// Every process may go through /proc/self/fd to what it has open itself.
TEST_F(ClientPlanTest, TakesNothingForAPolicyThatTheDaemonHasOpen) {
  const Fd berts(::open(folder("berts", kBert, 0700).c_str(), O_PATH | O_CLOEXEC));
  put("berts/policy", "version = 1\n", kBert, 0644);
  request_.sources.policy = config::Presence::Named;
  const std::string opened = "/proc/self/fd/" + std::to_string(berts.get());
  fs::create_symlink(opened + "/policy", path("work/link"));
  for (const std::string& name : {opened + "/policy", path("work/link")}) {
    request_.sources.policy_path = name;
    EXPECT_THAT(refusal(), HasSubstr("has no name of its own")) << name;
  }
  request_.sources.policy = config::Presence::Usual;
  request_.sources.policy_path = path("work/sallyport.toml");
  request_.working_directory = opened;
  EXPECT_THAT(refusal(), HasSubstr("Permission denied"));
}

TEST_F(ClientPlanTest, GivesACredentialToItsUsersAlone) {
  put("work/sallyport.toml", kPolicy, kAnna.uid);
  EXPECT_THAT(refusal(), HasSubstr("the credential 'github' is not given to you: this daemon's operator can "
                                   "write users = [23001] below [credential.github]"));
  put_config("users = [\"anna\", 23002]\n");
  EXPECT_THAT(refusal(), HasSubstr("is not given to you"));
  put_config("users = [23002, 23001]\n");
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_TRUE(plan->credentials.contains("github"));
  request_.client.reset();
  put_config("");
  EXPECT_TRUE(make_plan(request_)) << "root's own";
}

TEST_F(ClientPlanTest, AsksTheClientsOwnStoreForConsent) {
  put("operator/config.toml",
      "version = 1\n[credential.github]\nsource = { file = \"" + path("operator/token") +
          "\" }\nusers = [23001]\n",
      0);
  put("work/sallyport.toml", kPolicy, kAnna.uid);
  EXPECT_THAT(refusal(), HasSubstr("was never trusted"));
  for (const auto& [uid, mode] : {std::pair{0U, 0700U}, {kBert, 0700U}, {kBert, 0755U}}) {
    folder("home/trust", uid, mode);
    EXPECT_NE(refusal(), "") << uid;
  }
  own("home/trust", kAnna.uid, 0700, 0);
  {
    const os::ActAs anna(kAnna);
    ASSERT_TRUE(config::TrustStore(path("home/trust")).trust(path("work/sallyport.toml"), kPolicy));
  }
  const auto plan = make_plan(request_);
  EXPECT_TRUE(plan) << plan.error();
}

TEST_F(ClientPlanTest, ReadsTheNameForCommitsAsTheClient) {
  put("roots-name", "[user]\nname = canary\n", 0);
  put("home/.gitconfig", "[user]\nemail = anna@test\n[include]\npath = " + path("roots-name") + "\n",
      kAnna.uid);
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_NE(plan->profile.git.name, "canary");
  own("roots-name", kAnna.uid, 0600, 0);
  const auto readable = make_plan(request_);
  ASSERT_TRUE(readable) << readable.error();
  EXPECT_EQ(readable->profile.git.name, "canary");
  EXPECT_EQ(readable->profile.git.email, "anna@test");
}

// A repository as `git init` makes it, as far as the guard looks.
TEST_F(ClientPlanTest, MakesPlaceholdersAsTheClientAndTakesThemAway) {
  for (const char* name : {"work/.git", "work/.git/objects", "work/.git/refs"}) folder(name, kAnna.uid, 0755);
  put("work/.git/HEAD", "ref: refs/heads/main\n", kAnna.uid);
  put("work/.git/config", "[core]\n\tbare = false\n", kAnna.uid);
  {
    const auto plan = make_plan(request_);
    ASSERT_TRUE(plan) << plan.error();
    struct stat status{};
    ASSERT_EQ(::stat(path("work/.git/hooks").c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, kAnna.uid);
    EXPECT_EQ(plan->guard.client->uid, kAnna.uid);
  }
  EXPECT_FALSE(fs::exists(path("work/.git/hooks")));

  // Somebody else's repository stays as it is.
  for (const char* name : {"work", "work/.git"}) own(name, kBert, 0755, 0);
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_FALSE(fs::exists(path("work/.git/hooks")));
}

// Whose workspace it is may change it meanwhile: that is no sandbox's doing, and root would undo it.
TEST_F(ClientPlanTest, SetsNothingAsideThatTheClientCouldNot) {
  for (const char* name : {"work/.git", "work/.git/objects", "work/.git/objects/info", "work/.git/refs"}) {
    folder(name, kBert, 0755);
  }
  put("work/.git/HEAD", "ref: refs/heads/main\n", kBert, 0644);
  put("work/.git/config", "[core]\n\tbare = false\n", kBert, 0644);
  own("work", kBert, 0755, 0);
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  const auto links = sandbox::links_before(plan->guard);
  const auto armed = sandbox::armed_repositories(plan->guard, plan->identities.become_sandbox);
  os::EventLoop loop;
  os::FileWatcher watcher(loop);
  sandbox::WorkspaceWatch watch(watcher, plan->guard, [](const std::vector<sandbox::Finding>&) {});

  fs::create_symlink("/etc/passwd", path("work/.git/COMMIT_EDITMSG"));
  put("work/.git/objects/info/alternates", path("elsewhere"), kBert, 0644);
  EXPECT_THAT(watch.look(), ElementsAre(Field(&sandbox::Finding::text, HasSubstr("could not be renamed"))));
  EXPECT_THAT(sandbox::set_links_aside(plan->guard, links),
              ElementsAre(Field(&sandbox::Finding::text, HasSubstr("could not be renamed"))));
  EXPECT_THAT(sandbox::set_armed_repositories_aside(plan->guard, armed, plan->identities.become_sandbox),
              IsEmpty());
  EXPECT_TRUE(fs::is_symlink(path("work/.git/COMMIT_EDITMSG")));
  EXPECT_TRUE(fs::exists(path("work/.git/objects/info/alternates")));
  EXPECT_FALSE(os::acting_as());
}

TEST_F(ClientPlanTest, TakesItsPlaceholdersAwayWhenItFailsHalfWay) {
  for (const char* name : {"work/.git", "work/.git/objects", "work/.git/refs"}) folder(name, kAnna.uid, 0755);
  put("work/.git/HEAD", "ref: refs/heads/main\n", kAnna.uid);
  put("work/.git/config", "[include]\npath = missing\n", kAnna.uid);
  EXPECT_THAT(refusal(), HasSubstr("which is not there"));
  EXPECT_FALSE(fs::exists(path("work/.git/hooks")));
}

}  // namespace
}  // namespace sallyport::session
