#include "cli/paths.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>

#include "sandbox/folder_test.h"

namespace sallyport::cli {
namespace {

namespace fs = std::filesystem;

// Every test begins in a folder of its own with HOME=/home/user and nothing else set; environment and working
// directory are put back.
class PathsTest : public testing::Test {
 protected:
  PathsTest() : old_directory_(fs::current_path()), folder_(fs::canonical(test_folder_.path())) {
    for (const char* name : {"HOME", "PWD", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}) {
      const char* value = std::getenv(name);
      old_[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    set("HOME", "/home/user");
    fs::create_directory(folder_ / "real");
    fs::create_directory(folder_ / "other");
    fs::create_directory_symlink(folder_ / "real", folder_ / "link");
    fs::current_path(folder_ / "real");
  }
  ~PathsTest() override {
    fs::current_path(old_directory_);
    for (const auto& [name, value] : old_) {
      if (value) {
        set(name, *value);
      } else {
        ::unsetenv(name.c_str());
      }
    }
  }
  PathsTest(const PathsTest&) = delete;
  PathsTest& operator=(const PathsTest&) = delete;

  static void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  static Paths paths() {
    auto found = find_paths();
    EXPECT_TRUE(found);
    return found ? *found : Paths{};
  }

  sandbox::TestFolder test_folder_;
  fs::path old_directory_;
  fs::path folder_;
  std::map<std::string, std::optional<std::string>> old_;
};

TEST_F(PathsTest, WithoutXdgVariablesLieInTheHome) {
  EXPECT_EQ(paths().home, "/home/user");
  EXPECT_EQ(paths().config, "/home/user/.config/sallyport/config.toml");
  EXPECT_EQ(paths().audit, "/home/user/.local/state/sallyport/audit.jsonl");
}

TEST_F(PathsTest, FollowAbsoluteXdgVariables) {
  set("XDG_CONFIG_HOME", "/xdg/config");
  set("XDG_STATE_HOME", "/xdg/state");
  EXPECT_EQ(paths().config, "/xdg/config/sallyport/config.toml");
  EXPECT_EQ(paths().audit, "/xdg/state/sallyport/audit.jsonl");
}

TEST_F(PathsTest, IgnoreXdgVariablesThatAreNotAbsolute) {
  for (const char* value : {"", "relative", "./here", "~/config"}) {
    set("XDG_CONFIG_HOME", value);
    set("XDG_STATE_HOME", value);
    EXPECT_EQ(paths().config, "/home/user/.config/sallyport/config.toml") << value;
    EXPECT_EQ(paths().audit, "/home/user/.local/state/sallyport/audit.jsonl") << value;
  }
}

TEST_F(PathsTest, TakeTheAccountsHomeWhenTheVariableIsNoPath) {
  const passwd* account = ::getpwuid(::geteuid());
  const std::string expected = account != nullptr ? account->pw_dir : "/nonexistent";
  ::unsetenv("HOME");
  EXPECT_EQ(paths().home, expected);
  set("HOME", "relative");
  EXPECT_EQ(paths().home, expected);
}

TEST_F(PathsTest, SpellTheWorkingDirectoryAsTheShellDoes) {
  set("PWD", folder_ / "link");
  EXPECT_EQ(paths().working_directory, folder_ / "link");
}

TEST_F(PathsTest, DoNotBelieveAShellThatIsElsewhere) {
  const std::string values[] = {"", folder_ / "other", folder_ / "missing", "real", ".", "../link"};
  for (const std::string& value : values) {
    set("PWD", value);
    EXPECT_EQ(paths().working_directory, folder_ / "real") << value;
  }
  ::unsetenv("PWD");
  EXPECT_EQ(paths().working_directory, folder_ / "real");
}

TEST_F(PathsTest, AreAnErrorInAFolderThatIsGone) {
  fs::create_directory(folder_ / "gone");
  fs::current_path(folder_ / "gone");
  fs::remove(folder_ / "gone");
  const auto found = find_paths();
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().detail.find("working directory"), std::string::npos);
}

TEST_F(PathsTest, AbsoluteIsSeenFromTheWorkingDirectory) {
  const Paths here{
      .home = "/home/user", .working_directory = "/srv/link", .config = "", .audit = "", .trust = ""};
  const struct {
    const char* path;
    const char* expected;
  } cases[] = {
      {"file", "/srv/link/file"},     {"./a/../file", "/srv/link/file"}, {"../file", "/srv/file"},
      {"../../../file", "/file"},     {"/etc/file", "/etc/file"},        {"/etc//x/../file", "/etc/file"},
      {"~/file", "/srv/link/~/file"},
  };
  for (const auto& each : cases) EXPECT_EQ(absolute(each.path, here), each.expected) << each.path;
}

TEST_F(PathsTest, SourcesAreTheUsualFilesOrThoseThatTheUserNamed) {
  using config::Presence;
  const Paths here{.home = "/home/user",
                   .working_directory = "/srv",
                   .config = "/xdg/config.toml",
                   .audit = "",
                   .trust = "/state/trust"};
  const config::Sources usual = sources_of({}, here);
  EXPECT_EQ(usual.policy_path, "/srv/sallyport.toml");
  EXPECT_EQ(usual.policy, Presence::Usual);
  EXPECT_EQ(usual.config_path, "/xdg/config.toml");
  EXPECT_EQ(usual.config, Presence::Usual);
  EXPECT_EQ(usual.trust_folder, "/state/trust");
  const config::Sources named = sources_of({.policy = "p.toml", .config = "/c.toml"}, here);
  EXPECT_EQ(named.policy_path, "/srv/p.toml");
  EXPECT_EQ(named.policy, Presence::Named);
  EXPECT_EQ(named.config_path, "/c.toml");
  EXPECT_EQ(named.config, Presence::Named);
}

}  // namespace
}  // namespace sallyport::cli
