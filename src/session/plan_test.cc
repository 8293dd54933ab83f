#include "session/plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "config/trust_store.h"
#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

// Whom the workspace belongs to when the test is root.
constexpr uid_t kOrdinaryUid = 12345;

// A home, a workspace, and the operator's folder beside them; no file is there yet.
class PlanTest : public testing::Test {
 protected:
  PlanTest() : folder_(fs::canonical(test_folder_.path())) {
    for (const char* name : {"home", "work", "operator"}) fs::create_directory(folder_ / name);
    if (::geteuid() == 0) {
      EXPECT_EQ(::chown(path("work").c_str(), kOrdinaryUid, kOrdinaryUid), 0);
    }
    request_.command = {"true"};
    request_.working_directory = path("work");
    request_.home = path("home");
    request_.sources.policy_path = path("work/sallyport.toml");
    request_.sources.config_path = path("operator/config.toml");
    request_.sources.trust_folder = path("operator/trust");
    request_.audit_path = path("operator/audit.jsonl");
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string put(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    EXPECT_EQ(::chmod(path(name).c_str(), 0600), 0);
    return path(name);
  }
  // Defines the credentials github and forge, in these files.
  void put_config(const std::string& github, const std::string& forge) const {
    put("operator/config.toml",
        "version = 1\n[host.\"github.com\"]\ncredential = \"github\"\n"
        "[credential.github]\nsource = { file = \"" +
            github +
            "\" }\n"
            "[credential.forge]\nsource = { file = \"" +
            forge + "\" }\n");
  }
  // As `sallyport policy trust` does for the policy of the workspace, which is loaded as it would be.
  void trust_policy() const {
    const auto loaded = config::load(request_.sources);
    ASSERT_TRUE(loaded) << config::text_of(loaded.error());
    ASSERT_TRUE(loaded->policy);
    const config::TrustStore store(request_.sources.trust_folder);
    const auto trusted = store.trust(loaded->policy->path, loaded->policy->text);
    ASSERT_TRUE(trusted) << trusted.error().detail;
  }
  // A plan that must fail.
  std::string refusal() const {
    const auto plan = make_plan(request_);
    EXPECT_FALSE(plan);
    return plan ? "" : plan.error();
  }

  sandbox::TestFolder test_folder_;
  fs::path folder_;
  Request request_;
};

constexpr char kPolicy[] =
    "version = 1\n[[git]]\nrepo = \"github.com/acme/widget\"\naccess = \"push\"\ncredential = \"github\"\n";

TEST_F(PlanTest, WithoutAPolicyGrantsNothingAndSaysSo) {
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_TRUE(plan->grant.empty());
  EXPECT_THAT(plan->credentials, IsEmpty());
  EXPECT_THAT(plan->notices, Contains(HasSubstr("no policy: nothing is reachable")));
  EXPECT_THAT(plan->notices, Contains(HasSubstr(path("work/sallyport.toml"))));
  ASSERT_EQ(plan->mounts.size(), 1U);
  EXPECT_EQ(plan->mounts[0].path, path("work"));
  EXPECT_EQ(plan->mounts[0].access, sandbox::Access::ReadWrite);
  EXPECT_EQ(plan->working_directory, path("work"));
  EXPECT_THAT(plan->environment, Contains("PWD=" + path("work")));
}

TEST_F(PlanTest, NeverRunsTheSandboxAsRoot) {
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  const bool root = ::geteuid() == 0;
  EXPECT_EQ(plan->identities.sandbox.uid, root ? kOrdinaryUid : ::geteuid());
  EXPECT_EQ(plan->profile.ids.uid, plan->identities.sandbox.uid);
  EXPECT_EQ(plan->identities.become_sandbox.has_value(), root);
}

TEST_F(PlanTest, RefusesRootInRootsWorkspace) {
  if (::geteuid() != 0) GTEST_SKIP() << "concerns root alone";
  ASSERT_EQ(::chown(path("work").c_str(), 0, 0), 0);
  EXPECT_THAT(refusal(), HasSubstr("chown -R USER"));
}

TEST_F(PlanTest, HasOnlyTheCredentialsThatTheGrantNames) {
  put_config(path("operator/github.token"), path("operator/forge.token"));
  put("work/sallyport.toml", kPolicy);
  trust_policy();
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->grant.git.size(), 1U);
  ASSERT_EQ(plan->credentials.size(), 1U);
  EXPECT_EQ(plan->credentials.at("github").file, path("operator/github.token"));
  EXPECT_THAT(plan->notices, Not(Contains(HasSubstr("no policy"))));
}

TEST_F(PlanTest, AnOptionOfTheCommandLineGrantsWithTheHostsCredential) {
  put_config(path("operator/github.token"), path("operator/forge.token"));
  request_.sources.git_options = {"github.com/acme/widget"};
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->grant.git.size(), 1U);
  EXPECT_TRUE(plan->credentials.contains("github"));
}

TEST_F(PlanTest, RewritesTheUrlsOfGrantedHostsAndRepositories) {
  put("work/sallyport.toml",
      "version = 1\n[[git]]\nrepo = \"b.test/acme/*\"\naccess = \"fetch\"\n"
      "[[git]]\nrepo = \"a.test/acme/widget\"\naccess = \"fetch\"\n"
      "[[git]]\nrepo = \"a.test/*/*\"\naccess = \"fetch\"\n");
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_THAT(plan->profile.git_prefixes,
              ElementsAre("a.test/", "b.test/", "a.test/acme/widget", "b.test/acme/"));
}

TEST_F(PlanTest, RewritesNoMoreUrlsThanGitReadsQuickly) {
  std::string policy = "version = 1\n";
  for (int i = 0; i < 300; ++i) {
    policy += fmt::format("[[git]]\nrepo = \"a.test/acme/w{}\"\naccess = \"fetch\"\n", i);
  }
  put("work/sallyport.toml", policy);
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->profile.git_prefixes.size(), 200U);
  EXPECT_EQ(plan->profile.git_prefixes.front(), "a.test/");
}

TEST_F(PlanTest, MountsThePolicyReadOnly) {
  request_.sources.policy_path = put("work/sallyport.toml", "version = 1\n");
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  const auto policy = std::ranges::find(plan->mounts, path("work/sallyport.toml"), &sandbox::Mount::path);
  ASSERT_NE(policy, plan->mounts.end());
  EXPECT_EQ(policy->access, sandbox::Access::ReadOnly);
  EXPECT_NE(policy, plan->mounts.begin()) << "above the workspace, not below it";
}

TEST_F(PlanTest, LeavesAPolicyOutThatLiesInNoMount) {
  request_.sources.policy_path = put("home/other.toml", "version = 1\n");
  auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->mounts.size(), 1U);
  request_.mounts = {path("home/other.toml") + ":ro"};  // unless it is asked for
  plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->mounts[1].path, path("home/other.toml"));
}

TEST_F(PlanTest, SaysWhatIsWrongWithTheFilesAndWhere) {
  put("work/sallyport.toml", "version = 1\n[[git]]\nrepo = \"github.com/acme/widget\"\nacess = \"push\"\n");
  EXPECT_THAT(refusal(), HasSubstr("sallyport.toml:4:1:"));
  EXPECT_THAT(refusal(), HasSubstr("acess"));
  put("work/sallyport.toml", kPolicy);
  EXPECT_THAT(refusal(), HasSubstr("github"));  // a credential that nobody defines
  put("operator/config.toml", "version = 1\nhots = 1\n");
  EXPECT_THAT(refusal(), HasSubstr("config.toml:2:1:"));
  ASSERT_EQ(::chmod(path("operator/config.toml").c_str(), 0644), 0);
  EXPECT_THAT(refusal(), HasSubstr("chmod 600"));
}

TEST_F(PlanTest, RefusesANamedFileThatIsMissing) {
  request_.sources.policy = config::Presence::Named;
  EXPECT_THAT(refusal(), HasSubstr("does not exist"));
  request_.sources.policy = config::Presence::Usual;
  request_.sources.git_options = {"no-repository"};
  EXPECT_THAT(refusal(), HasSubstr("--git"));
}

TEST_F(PlanTest, RefusesAWorkspaceThatHoldsAGrantedCredential) {
  put("work/sallyport.toml", kPolicy);
  put_config(path("work/token"), path("operator/forge.token"));
  trust_policy();
  EXPECT_THAT(refusal(), HasSubstr("contains " + path("work/token")));
}

TEST_F(PlanTest, RefusesAWorkspaceThatHoldsTheOperatorsFileOrTheLog) {
  for (std::string* const file : {&request_.sources.config_path, &request_.audit_path}) {
    const std::string usual = std::exchange(*file, path("work/ours"));
    EXPECT_THAT(refusal(), HasSubstr("contains " + path("work/ours"))) << usual;
    *file = usual;
  }
  EXPECT_TRUE(make_plan(request_));
}

TEST_F(PlanTest, StopsForAPolicyThatUsesACredentialWithoutConsent) {
  put_config(path("operator/github.token"), path("operator/forge.token"));
  put("work/sallyport.toml", kPolicy);
  EXPECT_THAT(refusal(), HasSubstr("the policy uses credentials and needs your consent"));
  EXPECT_THAT(refusal(), HasSubstr("was never trusted"));
  EXPECT_THAT(refusal(), HasSubstr("push to github.com/acme/widget with the credential 'github' (line 2)"));
  EXPECT_THAT(refusal(), HasSubstr("\n  sallyport policy trust " + path("work/sallyport.toml")));
  EXPECT_FALSE(fs::exists(path("operator/trust"))) << "a plan has side effects on nothing";

  trust_policy();
  EXPECT_TRUE(make_plan(request_));
  put("work/sallyport.toml", kPolicy);  // touched, and the same
  EXPECT_TRUE(make_plan(request_));
  put("work/sallyport.toml", std::string(kPolicy) + "# one byte more\n");
  EXPECT_THAT(refusal(), HasSubstr("+# one byte more\n"));
  // Under another name, the same bytes are another file.
  fs::rename(path("work/sallyport.toml"), path("work/changed.toml"));
  request_.sources.policy_path = put("work/copy.toml", kPolicy);
  EXPECT_THAT(refusal(), HasSubstr("was never trusted"));
}

TEST_F(PlanTest, NeedsNoConsentToWhatUsesNoCredentialOrTheUserSaidItself) {
  put_config(path("operator/github.token"), path("operator/forge.token"));
  request_.sources.git_options = {"github.com/acme/widget:push"};
  put("work/sallyport.toml", "version = 1\n[[git]]\nrepo = \"github.com/*/*\"\naccess = \"fetch\"\n");
  EXPECT_TRUE(make_plan(request_));
  // The option covers the rule, but the rule is still a stranger's.
  put("work/sallyport.toml", kPolicy);
  EXPECT_THAT(refusal(), HasSubstr("was never trusted"));
}

TEST_F(PlanTest, DoesNotBelieveATrustStoreThatOthersCouldHaveWritten) {
  put_config(path("operator/github.token"), path("operator/forge.token"));
  put("work/sallyport.toml", kPolicy);
  trust_policy();
  ASSERT_EQ(::chmod(path("operator/trust").c_str(), 0770), 0);
  EXPECT_THAT(refusal(), HasSubstr("chmod 700 " + path("operator/trust")));
}

TEST_F(PlanTest, UsesTheVeryBytesThatItJudged) {
  put_config(path("operator/github.token"), path("operator/forge.token"));
  put("work/sallyport.toml", kPolicy);
  trust_policy();
  const std::string evil = put("evil.toml",
                               "version = 1\n[[git]]\nrepo = \"github.com/acme/evil\"\naccess = \"push\"\n"
                               "credential = \"github\"\n");
  fs::rename(path("work/sallyport.toml"), path("good.toml"));
  fs::rename(evil, path("work/sallyport.toml"));
  fs::rename(path("good.toml"), path("other.toml"));
  // Somebody exchanges the two as fast as can be: no plan may ever have what was not trusted.
  std::atomic<bool> over = false;
  std::thread attacker([&] {
    while (!over) {
      ::renameat2(AT_FDCWD, path("work/sallyport.toml").c_str(), AT_FDCWD, path("other.toml").c_str(),
                  RENAME_EXCHANGE);
    }
  });
  int planned = 0;
  for (int i = 0; i < 10'000 && planned < 50; ++i) {
    const auto plan = make_plan(request_);
    if (!plan) continue;
    ++planned;
    ASSERT_EQ(plan->grant.git.size(), 1U);
    EXPECT_EQ(plan->grant.git[0].repo.str(), "github.com/acme/widget");
  }
  over = true;
  attacker.join();
  EXPECT_GT(planned, 0);
}

TEST_F(PlanTest, RefusesAWorkspaceOrAMountThatReachesTheTrustStore) {
  fs::create_directories(path("elsewhere/trust"));
  request_.sources.trust_folder = path("elsewhere/trust");
  for (const char* mount : {"elsewhere", "elsewhere/trust", "elsewhere/trust/below"}) {
    fs::create_directories(path(mount));
    request_.mounts = {path(mount) + ":ro"};
    EXPECT_THAT(refusal(), HasSubstr("is Sallyport's own folder")) << mount;
  }
  // Through a link, at both of its ends.
  fs::create_directory_symlink(path("elsewhere"), path("link"));
  request_.mounts = {path("link")};
  EXPECT_THAT(refusal(), HasSubstr("is Sallyport's own folder"));
  request_.sources.trust_folder = path("link/trust");
  request_.mounts = {path("elsewhere")};
  EXPECT_THAT(refusal(), HasSubstr("is Sallyport's own folder"));
  request_.mounts.clear();
  request_.sources.trust_folder = path("work/state/trust");  // not there yet
  EXPECT_THAT(refusal(), HasSubstr("is Sallyport's own folder"));
}

TEST_F(PlanTest, RefusesAWorkspaceThatIsTheHomeOrIsGone) {
  request_.home = path("work");
  EXPECT_THAT(refusal(), HasSubstr("is the home folder itself"));
  request_.home = path("work/below");
  EXPECT_THAT(refusal(), HasSubstr("contains the home folder"));
  request_.home = path("home");
  request_.working_directory = path("missing");
  EXPECT_THAT(refusal(), HasSubstr(path("missing")));
}

TEST_F(PlanTest, RefusesAMountOrAVariableThatWouldLeak) {
  request_.mounts = {path("operator") + ":ro"};
  EXPECT_THAT(refusal(), HasSubstr("Sallyport's own folder"));
  request_.mounts = {":ro"};
  EXPECT_THAT(refusal(), HasSubstr("a mount needs a path"));
  request_.mounts.clear();
  request_.extra_environment = {"SSH_AUTH_SOCK=/tmp/agent"};
  EXPECT_THAT(refusal(), HasSubstr("SSH_AUTH_SOCK"));
}

TEST_F(PlanTest, HasTheMountsThatTheUserAskedFor) {
  fs::create_directory(path("data"));
  request_.mounts = {path("data") + ":ro"};
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  ASSERT_EQ(plan->mounts.size(), 2U);
  EXPECT_EQ(plan->mounts[1].path, path("data"));
  EXPECT_EQ(plan->mounts[1].access, sandbox::Access::ReadOnly);
}

TEST_F(PlanTest, TakesLittleOfTheCallersEnvironment) {
  request_.environment = {"LANG=C.UTF-8", "GITHUB_TOKEN=secret", std::string(kCanaryVariable) + "=canary"};
  request_.extra_environment = {"CI=1"};
  const auto plan = make_plan(request_);
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_THAT(plan->environment, Contains("CI=1"));
  EXPECT_THAT(plan->environment, Contains("LANG=C.UTF-8"));
  EXPECT_THAT(plan->environment, Not(Contains(HasSubstr("secret"))));
  EXPECT_THAT(plan->environment, Not(Contains(HasSubstr("canary"))));
}

}  // namespace
}  // namespace sallyport::session
