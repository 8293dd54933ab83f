#include "sandbox/git_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Stands in every secret of the tables, and in nothing that is shown.
constexpr char kCanary[] = "CaNaRy77";

struct ConfigCase {
  const char* config;
  const char* shown;  // nullptr: no secret
  const char* remedy = "take that line out";
};

class SecretIn : public ::testing::TestWithParam<ConfigCase> {};

TEST_P(SecretIn, IsFoundAndNotShown) {
  const auto entries = parse_git_config(GetParam().config);
  ASSERT_TRUE(entries) << entries.error().detail;
  ASSERT_EQ(entries->size(), 1U);
  const auto secret = secret_in(entries->front());
  ASSERT_EQ(secret.has_value(), GetParam().shown != nullptr) << (secret ? secret->shown : "");
  if (!secret) return;
  EXPECT_EQ(secret->shown, GetParam().shown);
  EXPECT_EQ(secret->remedy, GetParam().remedy);
  EXPECT_THAT(secret->shown + secret->remedy, Not(HasSubstr(kCanary)));
}

INSTANTIATE_TEST_SUITE_P(
    Credentials, SecretIn,
    ::testing::Values(
        ConfigCase{"[remote \"o\"]\nurl = https://u:CaNaRy77@h.test/a/b.git",
                   "remote.o.url = https://***@h.test/a/b.git",
                   "git remote set-url o https://h.test/a/b.git"},
        ConfigCase{"[remote \"o\"]\nurl = https://CaNaRy77@h.test/a/b",
                   "remote.o.url = https://***@h.test/a/b", "git remote set-url o https://h.test/a/b"},
        ConfigCase{"[remote \"o\"]\npushUrl = http://:CaNaRy77@h.test:8080/a",
                   "remote.o.pushurl = http://***@h.test:8080/a",
                   "git remote set-url --push o http://h.test:8080/a"},
        ConfigCase{"[remote \"o\"]\nurl = https://u:CaNaRy77/x@h.test/a", "remote.o.url = ***"},
        ConfigCase{"[remote \"o\"]\nurl = \"https://u:CaNaRy77#x@h.test/a\"",
                   "remote.o.url = https://***@h.test/a", "git remote set-url o https://h.test/a"},
        ConfigCase{"[remote \"o\"]\nurl = https://u@v:CaNaRy77@h.test/a",
                   "remote.o.url = https://***@h.test/a", "git remote set-url o https://h.test/a"},
        ConfigCase{"[remote \"o\"]\nurl = https://u@h.test/a?t=CaNaRy77", "remote.o.url = ***"},
        ConfigCase{"[remote \"o\"]\nurl = https://u:CaNaRy77@h.test/ghp_0123456789CaNaRy77",
                   "remote.o.url = ***"},
        ConfigCase{"[remote \"a;b\"]\nurl = https://CaNaRy77@h.test/a",
                   "remote.a;b.url = https://***@h.test/a"},
        ConfigCase{"[remote \"o\"]\nurl = https://u:CaNaRy77\\\n@h.test/a",
                   "remote.o.url = https://***@h.test/a", "git remote set-url o https://h.test/a"},
        ConfigCase{"[remote \"o\"]\nurl = \"https://u:\"CaNaRy77@h.test/a",
                   "remote.o.url = https://***@h.test/a", "git remote set-url o https://h.test/a"},
        ConfigCase{"[remote \"o\"]\nurl = ssh://git:CaNaRy77@h.test/a", "remote.o.url = ssh://***@h.test/a",
                   "git remote set-url o ssh://h.test/a"},
        ConfigCase{"[remote \"o\"]\nurl = ext::curl -H 'Authorization: CaNaRy77' x", "remote.o.url = ***"},
        ConfigCase{"[remote \"https://CaNaRy77@h.test/a\"]\nfetch = +x:y", "remote.***.fetch"},
        ConfigCase{"[submodule \"m\"]\nurl = https://u:CaNaRy77@h.test/a",
                   "submodule.m.url = https://***@h.test/a"},
        ConfigCase{"[branch \"b\"]\nremote = https://CaNaRy77@h.test/a",
                   "branch.b.remote = https://***@h.test/a"},
        ConfigCase{"[url \"https://CaNaRy77@h.test/\"]\ninsteadOf = https://h.test/", "url.***.insteadof"},
        ConfigCase{"[url \"https://h.test/\"]\npushInsteadOf = https://CaNaRy77@h.test/",
                   "url.https://h.test/.pushinsteadof = https://***@h.test/"},
        ConfigCase{"[lfs]\nurl = https://u:CaNaRy77@h.test/lfs", "lfs.url = https://***@h.test/lfs"},
        ConfigCase{"[http]\nextraHeader = X-Mine: CaNaRy77", "http.extraheader = ***"},
        ConfigCase{"[http \"https://h.test/\"]\nextraHeader = AUTHORIZATION: basic CaNaRy77",
                   "http.https://h.test/.extraheader = ***"},
        ConfigCase{"[http]\nproxy = http://u:CaNaRy77@p.test:3128", "http.proxy = http://***@p.test:3128"},
        ConfigCase{"[http]\nproxy = u:CaNaRy77@p.test:3128", "http.proxy = ***"},
        ConfigCase{"[remote \"o\"]\nproxy = CaNaRy77@p.test", "remote.o.proxy = ***"},
        ConfigCase{"[credential]\nhelper = \"!f() { echo password=CaNaRy77; }; f\"",
                   "credential.helper = ***"},
        ConfigCase{"[credential \"https://u:CaNaRy77@h.test\"]\nhelper = store", "credential.***.helper"},
        ConfigCase{"[core]\nsshCommand = sshpass -p CaNaRy77 ssh", "core.sshcommand = ***"},
        ConfigCase{"[github]\ntoken = CaNaRy77", "github.token = ***"},
        ConfigCase{"[sendemail]\nsmtpPass = CaNaRy77", "sendemail.smtppass = ***"},
        ConfigCase{"[alias]\nx = !curl -u x:ghp_0123456789CaNaRy77 h", "alias.x = ***"}));

INSTANTIATE_TEST_SUITE_P(
    Harmless, SecretIn,
    ::testing::Values(ConfigCase{"[remote \"o\"]\nurl = https://h.test/a", nullptr},
                      ConfigCase{"[remote \"o\"]\nurl = git@h.test:a/b", nullptr},
                      ConfigCase{"[remote \"o\"]\nurl = ssh://git@h.test:22/a", nullptr},
                      ConfigCase{"[remote \"o\"]\nurl = git+ssh://git@h.test/a", nullptr},
                      ConfigCase{"[remote \"o\"]\nurl = https://h.test:8443/a@v1", nullptr},
                      ConfigCase{"[remote \"o\"]\nurl = /srv/git/a", nullptr},
                      ConfigCase{"[user]\nemail = a@h.test", nullptr},
                      ConfigCase{"[credential]\nhelper = store", nullptr},
                      ConfigCase{"[credential]\nhelper =", nullptr},
                      ConfigCase{"[http]\nextraHeader =", nullptr},
                      ConfigCase{"[http]\nproxy = http://p.test:3128", nullptr},
                      ConfigCase{"[http]\nsslCertPasswordProtected = true", nullptr},
                      ConfigCase{"[core]\naskPass = /usr/bin/ask", nullptr},
                      ConfigCase{"[branch \"sk-learn-contrib-and-more\"]\nremote = origin", nullptr},
                      ConfigCase{"[core]\nbare", nullptr}));

struct LineCase {
  std::string line;
  bool secret;
};

TEST(SecretInLine, IsFoundInComments) {
  for (const LineCase& one : std::vector<LineCase>{{"# url = https://u:CaNaRy77@h.test/a", true},
                                                   {"; Authorization: Basic CaNaRy77", true},
                                                   {"# ghp_0123456789CaNaRy77", true},
                                                   {"-----BEGIN OPENSSH PRIVATE KEY-----", true},
                                                   {"# https://h.test/ is run by me@h.test", false},
                                                   {"# ssh://git@h.test/a", false},
                                                   {"\turl = https://h.test/a", false}}) {
    const auto secret = secret_in_line(one.line);
    EXPECT_EQ(secret.has_value(), one.secret) << one.line;
    if (secret) EXPECT_THAT(secret->shown, Not(HasSubstr(kCanary)));
  }
}

TEST(SecretInLogLine, IsFoundWhereGitWroteIt) {
  const std::string head = "0 1 A <a@h.test> 1700000000 +0000\t";
  for (const LineCase& one :
       std::vector<LineCase>{{head + "clone: from https://u:CaNaRy77@h.test/a", true},
                             {head + "pull https://CaNaRy77@h.test/a main: Fast-forward", true},
                             {"0\t\tbranch 'main' of https://u:CaNaRy77@h.test/a", true},
                             {"0\tnot-for-merge\t'refs/x' of https://u:CaNaRy77@h.test/a", true},
                             {"0\t\thttps://u:CaNaRy77@h.test/a", true},
                             {head + "clone: from https://h.test/a", false},
                             {head + "commit: parse https://user:pass@h.test/", false},
                             {head + "checkout: moving from main to x", false}}) {
    EXPECT_EQ(secret_in_log_line(one.line).has_value(), one.secret) << one.line;
  }
}

TEST(SecretFileOf, NamesTheFilesThatHoldACredential) {
  for (const auto& [config, file] : std::vector<std::pair<std::string, std::optional<std::string>>>{
           {"[credential]\nhelper = store --file ./pw", "./pw"},
           {"[credential \"https://h\"]\nhelper = store --file='a' --x", "a"},
           {"[credential]\nhelper = store", std::nullopt},
           {"[http]\ncookieFile = c", "c"},
           {"[http \"https://h\"]\nsslKey = k", "k"},
           {"[core]\nhooksPath = x", std::nullopt}}) {
    EXPECT_EQ(secret_file_of(parse_git_config(config)->front()), file) << config;
  }
}

}  // namespace
}  // namespace sallyport::sandbox
