#include "sandbox/profile.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sandbox/folder_test.h"

namespace sallyport::sandbox {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ProfileInput anna() {
  return {.ids = {1000, 1001},
          .user_name = "anna",
          .home = "/home/anna",
          .system_roots_pem = "roots",
          .session_ca_pem = "session\n",
          .git = {},
          .safe_folders = {},
          .git_prefixes = {}};
}

std::string file_of(const Profile& profile, const std::string& path) {
  const auto found = std::ranges::find(profile.files, path, &GeneratedFile::path);
  return found == profile.files.end() ? "(none)" : found->content;
}

std::vector<std::string> variables_of(const std::vector<std::string>& caller,
                                      const std::vector<EnvironmentRequest>& requests = {}) {
  return make_environment(anna(), caller, requests, "/w")->variables;
}

TEST(Profile, BindsNothingThatMayHoldASecret) {
  const Profile profile = make_profile(anna());
  for (const Bind& bind : profile.read_only) {
    EXPECT_NE(bind.path, "/etc");
    for (const char* secret :
         {"/etc/shadow", "/etc/ssh", "/etc/environment", "/etc/gitconfig", "/etc/npmrc", "/etc/ssl/private",
          "/etc/apt", "/etc/docker", "/root", "/home", "/var", "/opt"}) {
      EXPECT_FALSE(bind.path == secret || bind.path.starts_with(std::string(secret) + "/")) << bind.path;
    }
  }
}

TEST(Profile, GeneratesAUserDatabaseOfOne) {
  const Profile profile = make_profile(anna());
  EXPECT_THAT(file_of(profile, "/etc/passwd"), HasSubstr("\nanna:x:1000:1001:anna:/home/anna:/bin/"));
  EXPECT_THAT(file_of(profile, "/etc/group"), HasSubstr("\nanna:x:1001:\n"));
  EXPECT_EQ(file_of(profile, "/etc/resolv.conf"), "nameserver 198.18.0.1\n");
}

TEST(Profile, JoinsTheRootsAndTheSessionsCa) {
  const Profile profile = make_profile(anna());
  EXPECT_EQ(file_of(profile, kCaBundlePath), "roots\nsession\n");
  EXPECT_EQ(file_of(profile, kSessionCaPath), "session\n");
}

TEST(Profile, ShadowsNoSystemFolderWithAServiceUsersHome) {
  for (const char* home : {"/", "/usr/sbin", "/etc/x"}) {
    ProfileInput input = anna();
    input.home = home;
    EXPECT_THAT(make_profile(input).private_folders, Not(Contains(home)));
  }
  EXPECT_THAT(make_profile(anna()).private_folders, Contains("/home/anna"));
}

TEST(Profile, WritesNoLineIntoGitsConfigurationThatAValueSmugglesIn) {
  ProfileInput input = anna();
  input.git = {.name = "x\n[core]\n\tsshCommand = evil", .email = "a\\\"b@example.com"};
  input.safe_folders = {"/work space"};
  const std::string config = file_of(make_profile(input), "/etc/gitconfig");
  EXPECT_THAT(config, Not(HasSubstr("sshCommand")));
  EXPECT_THAT(config, HasSubstr("email = \"a\\\\\\\"b@example.com\"\n"));
  EXPECT_THAT(config, HasSubstr("directory = \"/work space\"\n"));
}

TEST(Profile, RewritesEverySpellingOfAGrantedUrlToHttps) {
  ProfileInput input = anna();
  input.git_prefixes = {"forge.test/", "forge.test/acme/widget"};
  const std::string config = file_of(make_profile(input), "/etc/gitconfig");
  EXPECT_THAT(config, HasSubstr("[url \"https://forge.test/\"]\n\tinsteadOf = git@forge.test:\n"
                                "\tpushInsteadOf = git@forge.test:\n"));
  for (const char* form :
       {"git@forge.test:acme/widget", "git@forge.test:/acme/widget", "ssh://git@forge.test/acme/widget",
        "ssh://git@forge.test:22/acme/widget", "git://forge.test/acme/widget",
        "git://forge.test:9418/acme/widget", "https://forge.test/acme/widget"}) {
    EXPECT_THAT(config, HasSubstr(fmt::format("\tinsteadOf = {0}\n\tpushInsteadOf = {0}\n", form)));
  }
}

TEST(Profile, PutsOurselvesInPlaceOfSsh) {
  const Profile profile = make_profile(anna());
  for (const char* path : {"/run/sallyport/ssh", "/run/sallyport/git-proxy"}) {
    const auto found = std::ranges::find(profile.links, path, &Link::path);
    ASSERT_NE(found, profile.links.end()) << path;
    EXPECT_EQ(found->target, kInitPath);
  }
  EXPECT_THAT(variables_of({}), Contains("GIT_CONFIG_SYSTEM=/etc/gitconfig"));
  EXPECT_THAT(variables_of({"GIT_SSH_COMMAND=ssh -i /x"}), Contains("GIT_SSH_COMMAND=/run/sallyport/ssh"));
}

TEST(Environment, TakesOnlyTheShortListFromTheCaller) {
  const auto variables = variables_of(
      {"TERM=xterm", "LC_TIME=C", "TZ=UTC", "SSH_AUTH_SOCK=/x", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x",
       "GITHUB_TOKEN=ghp_x", "AWS_SECRET_ACCESS_KEY=x", "LD_PRELOAD=/x", "HOME=/elsewhere", "no equals",
       "HTTPS_PROXY=http://user:pw@proxy", "GIT_ASKPASS=/x", "XDG_RUNTIME_DIR=/run/user/1000"});
  EXPECT_THAT(variables, AllOf(Contains("TERM=xterm"), Contains("LC_TIME=C"), Contains("TZ=UTC"),
                               Contains("HOME=/home/anna"), Contains("PWD=/w"), Contains("LANG=C.UTF-8")));
  for (const char* prefix : {"SSH_", "DBUS_", "GITHUB_", "AWS_SECRET", "LD_", "GIT_ASKPASS", "XDG_"}) {
    EXPECT_THAT(variables, Not(Contains(StartsWith(prefix))));
  }
  EXPECT_THAT(variables, Not(Contains(HasSubstr("user:pw"))));
}

TEST(Environment, PointsEveryClientAtTheBundle) {
  const auto variables = variables_of({"SSL_CERT_FILE=/elsewhere"});
  for (const char* name :
       {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT",
        "CARGO_HTTP_CAINFO", "DENO_CERT", "AWS_CA_BUNDLE", "NPM_CONFIG_CAFILE"}) {
    EXPECT_THAT(variables, Contains(std::string(name) + "=" + kCaBundlePath));
  }
  EXPECT_THAT(variables, Contains(std::string("NODE_EXTRA_CA_CERTS=") + kSessionCaPath));
  EXPECT_THAT(variables,
              Contains(std::string("JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=") + kJavaTrustPath));
}

TEST(Environment, NamesTheProxyInBothCasesUnlessToldOtherwise) {
  const auto variables = variables_of({"https_proxy=http://theirs:1"}, {{"all_proxy", ""}});
  for (const char* name : {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"}) {
    EXPECT_THAT(variables, Contains(std::string(name) + "=http://198.18.0.1:3128"));
  }
  EXPECT_THAT(variables, Contains("all_proxy="));
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    EXPECT_THAT(variables, Contains(std::string(name) + "=localhost,127.0.0.1,::1"));
  }
}

TEST(Environment, GivesWhatIsAskedForByName) {
  const auto variables = variables_of({"MINE=1"}, {{"MINE", {}}, {"OTHER", "a=b"}, {"PATH", "/x"}});
  EXPECT_THAT(variables, AllOf(Contains("MINE=1"), Contains("OTHER=a=b"), Contains("PATH=/x")));
}

TEST(Environment, WarnsOfWhatLooksLikeACredentialAndOfWhatIsNotSet) {
  const auto environment =
      make_environment(anna(), {"GITHUB_TOKEN=x"},
                       {{"GITHUB_TOKEN", {}}, {"X", "ghp_abc"}, {"Y", "plain"}, {"ABSENT", {}}}, "/w");
  ASSERT_TRUE(environment.has_value());
  EXPECT_THAT(environment->warnings, ElementsAre(StartsWith("--env GITHUB_TOKEN: looks like a credential"),
                                                 StartsWith("--env X: looks like a credential"),
                                                 StartsWith("--env ABSENT: not set here")));
  EXPECT_THAT(environment->warnings[1], Not(HasSubstr("ghp_abc")));
}

TEST(Environment, RefusesToUndoTheProfile) {
  for (const char* name :
       {"HOME", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS",
        "SSL_CERT_FILE", "GIT_TERMINAL_PROMPT", "NODE_EXTRA_CA_CERTS"}) {
    const auto environment = make_environment(anna(), {}, {{name, "x"}}, "/w");
    ASSERT_FALSE(environment.has_value()) << name;
    EXPECT_EQ(environment.error().reason, Reason::BadRequest);
    EXPECT_THAT(environment.error().detail, HasSubstr(name));
  }
}

TEST(FilesOverAnImage, AreGitsConfigurationAndTheAuthoritiesInEveryPlace) {
  const auto files = files_over_image(anna(), "box");
  std::vector<std::string> bundles;
  for (const GeneratedFile& file : files) {
    if (file.content == "roots\nsession\n") bundles.push_back(file.path);
    EXPECT_TRUE(file.path.starts_with("/etc/")) << file.path;
  }
  EXPECT_THAT(bundles, AllOf(Contains(kCaBundlePath), Contains("/etc/ssl/cert.pem"),
                             Contains("/etc/pki/tls/certs/ca-bundle.crt")));
  std::vector<std::string> paths;
  for (const GeneratedFile& file : files) paths.push_back(file.path);
  EXPECT_THAT(paths, AllOf(Contains("/etc/gitconfig"), Contains(kSessionCaPath), Contains(kJavaTrustPath)));
  EXPECT_THAT(paths, AllOf(Contains("/etc/hosts"), Contains("/etc/resolv.conf")));
  // Users are the image's.
  for (const char* path : {"/etc/passwd", "/etc/group"}) {
    EXPECT_THAT(paths, Not(Contains(path)));
  }
  std::ranges::sort(paths);
  EXPECT_EQ(std::ranges::adjacent_find(paths), paths.end());
}

TEST(EnvironmentOverAnImage, HasTheImagesPathAndOursForTheRest) {
  const std::vector<std::string> image = {
      "PATH=/opt/bin", "LANG=de_DE", "JAVA_HOME=/opt/java", "TERM=odd", "no name=x", "=x", "NOTHING"};
  const std::vector<std::string> ours = {"PATH=/usr/bin", "SHELL=/bin/bash", "LANG=C.UTF-8", "TERM=dumb",
                                         "SSL_CERT_FILE=/etc/x"};
  EXPECT_THAT(environment_over_image(image, ours, {}),
              ::testing::UnorderedElementsAre("PATH=/opt/bin", "SHELL=/bin/sh", "LANG=de_DE", "TERM=dumb",
                                              "SSL_CERT_FILE=/etc/x", "JAVA_HOME=/opt/java"));
}

TEST(EnvironmentOverAnImage, IsTheUsersWhereHeNamesIt) {
  const auto all =
      environment_over_image({"PATH=/opt/bin", "A=image"}, {"PATH=/mine", "A=mine", "SHELL=/zsh"},
                             {"PATH=/mine", "A=mine", "SHELL=/zsh"});
  EXPECT_THAT(all, ::testing::UnorderedElementsAre("PATH=/mine", "A=mine", "SHELL=/zsh"));
}

TEST(EnvironmentOverAnImage, LetsNoImageUndoTheProfile) {
  const std::vector<std::string> ours = {"PATH=/usr/bin", "HOME=/home/anna", "GIT_CONFIG_COUNT=6"};
  for (const char* line :
       {"HOME=/evil", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_9=core.pager", "GIT_CONFIG_GLOBAL=/evil",
        "GIT_SSH_COMMAND=/evil", "SSL_CERT_FILE=/evil", "NODE_EXTRA_CA_CERTS=/evil", "SSH_AUTH_SOCK=/evil"}) {
    for (const std::string& variable : environment_over_image({line}, ours, {})) {
      EXPECT_THAT(variable, Not(HasSubstr("evil")));
      EXPECT_NE(variable, line);
    }
  }
}

TEST(ParseEnvironmentRequest, ReadsNameAndValue) {
  EXPECT_EQ(parse_environment_request("A")->value, std::nullopt);
  EXPECT_EQ(parse_environment_request("A=")->value, "");
  EXPECT_EQ(parse_environment_request("A=b=c")->value, "b=c");
  for (const char* bad : {"", "=x", "1A=x", "A-B=x", "A B"}) {
    EXPECT_FALSE(parse_environment_request(bad).has_value()) << bad;
  }
  EXPECT_FALSE(parse_environment_request(std::string_view("A=b\0c", 5)).has_value());
}

TEST(GitIdentityOfCaller, IsReadFromTheGlobalConfiguration) {
  const TestFolder home;
  std::ofstream(home.path() + "/.gitconfig") << "[user]\n\tname = Ann Example\n\temail = ann@example.com\n"
                                                "\tsigningkey = secret\n[credential]\n\thelper = store\n";
  const GitIdentity identity = read_git_identity(home.path());
  EXPECT_EQ(identity.name, "Ann Example");
  EXPECT_EQ(identity.email, "ann@example.com");
}

TEST(GitIdentityOfCaller, IsEmptyWithoutAConfiguration) {
  const TestFolder home;
  EXPECT_THAT(read_git_identity(home.path()).name, IsEmpty());
}

TEST(SystemRoots, AreFoundOnThisMachine) {
  EXPECT_THAT(read_system_roots().value_or(""), HasSubstr("-----BEGIN CERTIFICATE-----"));
}

}  // namespace
}  // namespace sallyport::sandbox
