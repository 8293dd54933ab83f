#include "config/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/sources.h"
#include "config/testing.h"
#include "policy/decide.h"

namespace sallyport::config {
namespace {

using policy::Access;
using policy::HostKind;

constexpr const char* kCertificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";

policy::HostName host(std::string_view text) {
  return *policy::HostName::parse(text);
}

// A folder of its own for each test, gone afterwards.
class ConfigFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "sallyport-config-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  std::filesystem::path folder_;
};

TEST(OperatorConfig, HasEverythingThatTheFileSays) {
  const OperatorConfig config = example_operator_config();
  ASSERT_EQ(config.credentials.size(), 2U);
  EXPECT_EQ(config.credentials.at("github").file, "/run/keys/github");
  EXPECT_EQ(config.credentials.at("forge-bot").file, "/home/me/.config/sallyport/forge.token");
  EXPECT_EQ(config.credentials.at("github").place.line, 15);

  ASSERT_EQ(config.hosts.size(), 3U);
  const HostEntry& github = config.hosts.at(host("github.com"));
  EXPECT_EQ(github.upstream.kind, HostKind::GitHub);  // known without being said
  EXPECT_EQ(github.credential, "github");
  EXPECT_FALSE(github.upstream.allow_private);
  const HostEntry& forge = config.hosts.at(host("forge.example.com"));
  EXPECT_EQ(forge.upstream.kind, HostKind::GitLab);
  EXPECT_EQ(forge.upstream.address->address.str(), "10.0.0.7");
  EXPECT_EQ(forge.upstream.address->port, 8443);
  const HostEntry& git = config.hosts.at(host("git.example.com"));
  EXPECT_TRUE(git.upstream.allow_private);
  EXPECT_EQ(git.credential, "");
}

TEST(OperatorConfig, ChangesTheTimeoutsThatItNames) {
  const auto config = parse_operator_config(
      "version = 1\n[timeouts]\nconnect = \"1ms\"\nrequest_head = \"86400000ms\"\nfirst_byte = \"20s\"\n"
      "idle = \"1440min\"\n",
      "config.toml");
  ASSERT_TRUE(config) << joined(config.error());
  policy::Timeouts wanted;
  wanted.connect = policy::kMinTimeout;
  wanted.request_head = policy::kMaxTimeout;
  wanted.first_byte = std::chrono::seconds(20);
  wanted.idle = std::chrono::hours(24);
  EXPECT_EQ(config->timeouts, wanted);
  const auto grant = make_grant({}, {}, *config);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->timeouts, wanted);
  EXPECT_EQ(example_operator_config().timeouts, policy::Timeouts{});
}

TEST(OperatorConfig, ChangesTheLimitsThatItNamesAndAPolicyLowersThem) {
  const auto config = parse_operator_config(
      "version = 1\n[limits]\nconnections = 4096\nrequests = \"unlimited\"\ndns = \"5/min\"\n"
      "upload = \"2GiB/day burst 1MiB\"\ntunnel_idle = \"5s\"\ntunnel_download = \"1KiB\"\n",
      "config.toml");
  ASSERT_TRUE(config) << joined(config.error());
  policy::Limits wanted;
  wanted.connections = 4096;
  wanted.requests = std::nullopt;
  wanted.dns = Rate{.amount = 5, .per = std::chrono::minutes(1), .burst = 10};
  wanted.upload = Rate{.amount = 2UL << 30U, .per = std::chrono::hours(24), .burst = 1UL << 20U};
  wanted.tunnel_idle = std::chrono::seconds(5);
  wanted.tunnel_download = 1024;
  EXPECT_EQ(config->limits, wanted);

  const auto policy = parse_policy(
      "version = 1\n[limits]\nconnections = 10\nrequests = \"7/s\"\ndns = \"unlimited\"\n"
      "upload = \"3GiB/day\"\ntunnel_idle = \"6s\"\n[[git]]\nrepo = \"github.com/acme/widget\"\n"
      "access = \"fetch\"\n",
      "sallyport.toml", *config);
  ASSERT_TRUE(policy) << joined(policy.error());
  const auto grant = make_grant(*policy, {}, *config);
  ASSERT_TRUE(grant) << joined(grant.error());
  wanted.connections = 10;
  wanted.requests = Rate{.amount = 7, .burst = 14};
  EXPECT_EQ(grant->limits, wanted);
  EXPECT_EQ(make_grant({}, {}, *config)->limits, config->limits);
}

TEST(OperatorConfig, HasALimitOnApprovals) {
  std::string text = "version = 1\n[credential.github]\nsource = { file = \"/run/keys/github\" }\n";
  for (std::size_t i = 0; i < kMaxApprovals; ++i) {
    text += "[[approve]]\nrepo=\"github.com/acme/" + std::to_string(i) +
            "\"\naccess=\"push\"\ncredential=\"github\"\n";
  }
  const auto config = parse_operator_config(text, "config.toml");
  ASSERT_TRUE(config) << joined(config.error());
  EXPECT_EQ(config->approvals.size(), kMaxApprovals);
  const auto one_more = parse_operator_config(text + "[[approve]]\n", "config.toml");
  ASSERT_FALSE(one_more);
  EXPECT_EQ(joined(one_more.error()),
            "config.toml:4004:1: the file has more than 1000 approvals; use wildcards\n");
}

TEST(OperatorConfig, HasALimitOnHosts) {
  std::string file = "version = 1\n";
  for (std::size_t i = 0; i < kMaxHosts; ++i) file += "[host.\"h" + std::to_string(i) + ".test\"]\n";
  EXPECT_TRUE(parse_operator_config(file, "config.toml", ""));
  const auto one_more = parse_operator_config(file + "[host.\"*.test.test\"]\n", "config.toml", "");
  ASSERT_FALSE(one_more);
  EXPECT_EQ(
      joined(one_more.error()),
      "config.toml:10002:7: the file describes more than 10000 hosts; describe all hosts below a name in "
      "one table\n");
}

TEST(OperatorConfig, WithoutAHomeFolderHasNoTilde) {
  const auto config = parse_operator_config(
      "version = 1\n[credential.github]\nsource = { file = \"~/token\" }\n", "config.toml", "");
  ASSERT_FALSE(config);
  EXPECT_EQ(joined(config.error()),
            "config.toml:3:19: HOME is not set, so '~/' stands for nothing; begin it with '/'\n");
}

TEST_F(ConfigFiles, OperatorConfigReadsTheCa) {
  const std::string ca = write("ca.pem", kCertificate, 0644);
  const auto config =
      parse_operator_config("version = 1\n[host.\"forge.test\"]\nca = \"" + ca + "\"\n", "config.toml");
  ASSERT_TRUE(config) << joined(config.error());
  EXPECT_EQ(config->hosts.at(host("forge.test")).upstream.ca_pem, kCertificate);
}

TEST_F(ConfigFiles, OperatorConfigRefusesACaThatIsNone) {
  struct Case {
    std::string path;
    std::string message;
  };
  const std::string key = write("both.pem", std::string(kCertificate) + "-----BEGIN PRIVATE KEY-----\n");
  const std::string half = write("half.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
  const std::string open = write("open.pem", kCertificate, 0666);
  const std::string large = write("large.pem", std::string(kMaxFileBytes + 1, 'x'));
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const Case& c : std::vector<Case>{
           {key, " holds a private key; name a file that holds the CA's certificate alone"},
           {half, " holds no certificate; name a PEM file with the CA's certificate"},
           {open, " may be written by everybody; chmod o-w it"},
           {large, " is larger than 1 MiB"},
           {fifo, " is not a regular file; name a file"},
           {folder_, " is not a regular file; name a file"},
       }) {
    const auto config =
        parse_operator_config("version = 1\n[host.\"forge.test\"]\nca = \"" + c.path + "\"\n", "config.toml");
    ASSERT_FALSE(config) << c.path;
    EXPECT_EQ(joined(config.error()), "config.toml:3:6: ca: " + c.path + c.message + "\n");
  }
}

TEST_F(ConfigFiles, FilesAtTheirUsualPlaceMayBeMissingAndNamedOnesMayNot) {
  Sources sources{.policy_path = folder_ / "sallyport.toml", .config_path = folder_ / "config.toml"};
  const auto nothing = load(sources);
  ASSERT_TRUE(nothing);
  EXPECT_TRUE(nothing->grant.empty());
  sources.config = Presence::Named;
  EXPECT_FALSE(load(sources));
  sources.config = Presence::Usual;
  sources.policy = Presence::Named;
  EXPECT_FALSE(load(sources));
}

TEST_F(ConfigFiles, OperatorConfigMustBePrivate) {
  EXPECT_TRUE(load_operator_config(write("private.toml", "version = 1\n", 0600)));
  EXPECT_TRUE(load_operator_config(write("read_only.toml", "version = 1\n", 0400)));
  for (const mode_t mode : {0640U, 0604U, 0660U, 0644U, 0666U}) {
    const std::string path = write("open.toml", "version = 1\n", mode);
    const auto config = load_operator_config(path);
    ASSERT_FALSE(config) << mode;
    const std::string message = joined(config.error());
    EXPECT_TRUE(message.starts_with(path + ": the operator's file ")) << message;
    EXPECT_NE(message.find("chmod 600 " + path), std::string::npos) << message;
  }
  std::filesystem::create_symlink(folder_ / "private.toml", folder_ / "link.toml");
  EXPECT_FALSE(load_operator_config(folder_ / "link.toml"));
  std::filesystem::create_symlink(folder_ / "nothing", folder_ / "dangling.toml");
  EXPECT_FALSE(load_operator_config(folder_ / "dangling.toml"));
  EXPECT_FALSE(load_operator_config(folder_));
  EXPECT_FALSE(load_operator_config(write("large.toml", std::string(kMaxFileBytes + 1, '#'))));
}

TEST_F(ConfigFiles, PolicyThatCannotBeReadIsAProblem) {
  const OperatorConfig config;
  EXPECT_TRUE(load_policy(write("sallyport.toml", "version = 1\n", 0644), config));

  const auto message = [&](const std::string& path) {
    const auto policy = load_policy(path, config);
    return policy ? "accepted" : joined(policy.error());
  };
  const std::string missing = folder_ / "missing.toml";
  EXPECT_EQ(message(missing), missing + ": the policy file does not exist; create it, or name another\n");
  EXPECT_EQ(message(folder_), folder_.string() + ": the policy file is not a regular file; name a file\n");
  const std::string open = write("open.toml", "version = 1\n", 0666);
  EXPECT_EQ(message(open), open + ": the policy file may be written by everybody; chmod o-w it\n");
  const std::string large = write("large.toml", std::string(kMaxPolicyBytes + 1, '#'));
  EXPECT_EQ(message(large), large + ": the policy file is larger than 8 MiB\n");
}

TEST(Policy, KeepsRulesInTheirOrderWithTheirPlaces) {
  const std::string text = read_for_test(source_path("tests/data/policies/good/example.toml"));
  const auto policy = parse_policy(text, "sallyport.toml", example_operator_config());
  ASSERT_TRUE(policy) << joined(policy.error());
  ASSERT_EQ(policy->git.size(), 5U);
  EXPECT_EQ(policy->git[0].repo.str(), "github.com/acme/widget");
  EXPECT_EQ(policy->git[0].access, Access::Push);
  EXPECT_EQ(policy->git[0].credential, "github");
  EXPECT_EQ(policy->git[0].source.str(), "sallyport.toml:4");
  EXPECT_EQ(policy->git[2].credential, "");
  EXPECT_EQ(policy->git[3].repo.str(), "forge.example.com/group/team/widget");
}

TEST(Policy, HasLimitsOnItsSize) {
  const auto too_large = parse_policy(std::string(kMaxPolicyBytes + 1, '\n'), "sallyport.toml", {});
  ASSERT_FALSE(too_large);
  EXPECT_EQ(joined(too_large.error()),
            "sallyport.toml: the file is larger than 8 MiB; split it, or use wildcards\n");

  std::string rules = "version = 1\n";
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    rules += "[[git]]\nrepo=\"a.test/b/" + std::to_string(i) + "\"\naccess=\"push\"\n";
  }
  EXPECT_TRUE(parse_policy(rules, "sallyport.toml", {}));
  const auto one_more = parse_policy(rules + "[[git]]\n", "sallyport.toml", {});
  ASSERT_FALSE(one_more);
  EXPECT_EQ(joined(one_more.error()),
            "sallyport.toml:30002:1: the file has more than 10000 rules; use wildcards\n");
}

TEST(Policy, SurvivesNestingOfEveryKind) {
  const auto refused = [](const std::string& text) { return !parse_policy(text, "sallyport.toml", {}); };
  EXPECT_TRUE(refused("x = " + std::string(100'000, '[')));
  std::string dotted = "[a";
  for (int i = 0; i < 200'000; ++i) dotted += ".a";
  EXPECT_TRUE(refused(dotted + "]\n"));
  // Quotes that try to hide the dots of a key.
  const std::string dots = dotted.substr(2);
  EXPECT_TRUE(refused("\"a\"" + dots + "=1\n"));
  EXPECT_TRUE(refused("'\"'" + dots + "=1\n"));
  EXPECT_TRUE(refused("\"\\\"\"" + dots + "=1\n"));
  EXPECT_TRUE(refused("x = [\"\"\"\n\"\"\", {a" + dots + "=1}]\n"));
  EXPECT_TRUE(refused("x = [\"\"\"\n\"\nb\"\"\", {a" + dots + "=1}]\n"));
  std::string mixed = "x";
  for (int i = 0; i < 120; ++i) {
    for (int j = 0; j < 60; ++j) mixed += ".a";
    mixed += "=[\n{a";
  }
  mixed += "=1";
  for (int i = 0; i < 120; ++i) mixed += "}\n]";
  EXPECT_TRUE(refused(mixed));
}

TEST(GitOption, NamesARepositoryAndPerhapsPush) {
  const OperatorConfig config = example_operator_config();
  const auto fetch = parse_git_option("github.com/acme/widget.git", config);
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->repo.str(), "github.com/acme/widget");
  EXPECT_EQ(fetch->access, Access::Fetch);
  EXPECT_EQ(fetch->credential, "github");
  EXPECT_EQ(fetch->source.str(), "--git");
  const auto push = parse_git_option("forge.example.com/group/team/*:push", config);
  ASSERT_TRUE(push);
  EXPECT_EQ(push->access, Access::Push);
  EXPECT_EQ(push->credential, "forge-bot");
  EXPECT_EQ(parse_git_option("codeberg.org/a/b", config)->credential, "");
}

TEST(GitOption, IsRefusedWithAMessage) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {"github.com/acme/widget:pull",
            "--git: the access cannot be 'pull'; write HOST/OWNER/REPO to fetch, HOST/OWNER/REPO:push to "
            "push too\n"},
           {"github.com/acme/widget:",
            "--git: the access cannot be ''; write HOST/OWNER/REPO to fetch, HOST/OWNER/REPO:push to push "
            "too\n"},
           {"github.com/acme",
            "--git: a repository has exactly two segments behind the host: 'host/owner/name'\n"},
           {"acme/widget",
            "--git: the host name has a single label; begin with the host's name, as in "
            "\"github.com/acme/widget\"\n"},
           {"https://github.com/acme/widget",
            "--git: write 'host/owner/name' without a scheme; begin with the host's name, as in "
            "\"github.com/acme/widget\"\n"},
           {"",
            "--git: the host name has an empty label; begin with the host's name, as in "
            "\"github.com/acme/widget\"\n"},
       }) {
    const auto rule = parse_git_option(c.text, {});
    ASSERT_FALSE(rule) << c.text;
    EXPECT_EQ(joined(rule.error()), c.message);
  }
}

TEST(Grant, HasAnEntryForEveryHostThatARuleNames) {
  const OperatorConfig config = example_operator_config();
  const auto policy = parse_policy(
      "version = 1\n"
      "[[git]]\nrepo = \"forge.example.com/group/widget\"\naccess = \"fetch\"\n"
      "[[git]]\nrepo = \"codeberg.org/acme/widget\"\naccess = \"fetch\"\n",
      "sallyport.toml", config);
  ASSERT_TRUE(policy);
  const auto grant = make_grant(*policy, {}, config);
  ASSERT_TRUE(grant);
  // The operator's other hosts are nobody's business here.
  EXPECT_EQ(grant->hosts.size(), 2U);
  EXPECT_EQ(grant->kind_of(host("forge.example.com")), HostKind::GitLab);
  EXPECT_EQ(grant->find_host(host("forge.example.com"))->address->port, 8443);
  EXPECT_EQ(grant->kind_of(host("codeberg.org")), HostKind::Gitea);
  EXPECT_EQ(grant->find_host(host("gitlab.com")), nullptr);
}

TEST(Grant, HasWhatTheOperatorSaysOfAllHostsBelowAName) {
  const auto config = parse_operator_config(
      read_for_test(source_path("tests/data/policies/good_operator/host_below.toml")), "config.toml");
  ASSERT_TRUE(config) << joined(config.error());
  const std::vector options{*parse_git_option("forge.corp.example/a/b", *config),
                            *parse_git_option("git.corp.example/a/b", *config)};
  const auto grant = make_grant({}, options, *config);
  ASSERT_TRUE(grant) << joined(grant.error());
  const auto address_of = [&](std::string_view name) {
    const policy::UpstreamHost* entry = grant->find_host(host(name));
    return entry != nullptr && entry->address ? entry->address->address.str() : "";
  };
  EXPECT_EQ(address_of("a.corp.example"), "10.0.0.8");
  EXPECT_EQ(address_of("a.b.corp.example"), "10.0.0.8");
  EXPECT_EQ(address_of("corp.example"), "");  // never of the name itself
  // An entry of its own says all there is to say.
  EXPECT_EQ(address_of("git.corp.example"), "");
  EXPECT_EQ(grant->kind_of(host("git.corp.example")), HostKind::Gitea);
  // A host of a rule without one has that of those below the name.
  EXPECT_EQ(address_of("forge.corp.example"), "10.0.0.8");
  EXPECT_TRUE(grant->hosts.contains(host("forge.corp.example")));
}

TEST(Grant, HasTheOperatorsNameServersInTheirOrder) {
  const auto config = parse_operator_config(
      read_for_test(source_path("tests/data/policies/good_operator/resolvers.toml")), "config.toml");
  ASSERT_TRUE(config) << joined(config.error());
  const auto grant = make_grant({}, {}, *config);
  ASSERT_TRUE(grant);
  std::string texts;
  for (const policy::PinnedAddress& server : grant->resolvers) {
    texts += server.address.str() + " " + std::to_string(server.port.value_or(0)) + "\n";
  }
  EXPECT_EQ(texts, "127.0.0.53 0\n192.0.2.53 5353\n2001:db8::53 53\n2001:db8::54 0\n");
}

TEST(Grant, LetsTheCommandLineDecideBeforeAnEqualRule) {
  const OperatorConfig config = example_operator_config();
  const auto policy =
      parse_policy("version = 1\n[[git]]\nrepo = \"github.com/acme/widget\"\naccess = \"fetch\"\n",
                   "sallyport.toml", config);
  const std::vector options{*parse_git_option("github.com/Acme/Widget:push", config)};
  const auto grant = make_grant(*policy, options, config);
  ASSERT_TRUE(grant) << joined(grant.error());
  policy::GitRoute route{*policy::parse_repo("github.com/acme/widget", HostKind::GitHub),
                         policy::GitService::ReceivePack, policy::GitEndpoint::Rpc, false};
  const policy::Decision decision = policy::decide(*grant, policy::UseGit{route, policy::kHttpsPort});
  EXPECT_TRUE(decision.allowed());
  EXPECT_EQ(grant->git.at(decision.rule->index).source.str(), "--git");
}

TEST(Grant, RefusesOptionsThatRepeatEachOther) {
  const std::vector options{*parse_git_option("github.com/acme/widget", {}),
                            *parse_git_option("github.com/acme/widget:push", {})};
  const auto grant = make_grant({}, options, {});
  ASSERT_FALSE(grant);
  EXPECT_EQ(joined(grant.error()),
            "--git: this rule names the same repositories as 'github.com/acme/widget' (--git); remove one of "
            "them\n");
}

TEST(Grant, OfNothingIsEmpty) {
  const auto grant = make_grant({}, {}, {});
  ASSERT_TRUE(grant);
  EXPECT_TRUE(grant->empty());
}

policy::UseHttp http(policy::Scheme scheme, std::uint16_t port, policy::Method method,
                     std::string_view target) {
  return {scheme, host("api.test"), port, method, *policy::HttpPath::parse(target)};
}

TEST(LineToAdd, MakesAPolicyThatAllowsTheOperation) {
  policy::GitRoute push{*policy::parse_repo("forge.test/acme/widget", HostKind::Generic),
                        policy::GitService::ReceivePack, policy::GitEndpoint::Rpc, true};
  policy::GitRoute fetch = push;
  fetch.service = policy::GitService::UploadPack;
  for (const policy::Operation& operation : std::vector<policy::Operation>{
           policy::ResolveName{host("forge.test")}, policy::Connect{host("forge.test"), policy::kHttpsPort},
           policy::UseGit{push, policy::kHttpsPort}, policy::UseGit{fetch, policy::kHttpsPort},
           policy::ResolveName{host("github.com")}, policy::Connect{host("db.test"), 5432},
           policy::Connect{host("mirror.test"), policy::kHttpPort},
           http(policy::Scheme::Https, 443, policy::Method::Get, "/a/b"),
           http(policy::Scheme::Https, 8443, policy::Method::Delete, "/a%2Fb/%E2%82%AC/?q=1"),
           http(policy::Scheme::Http, 80, policy::Method::Post, "/"),
           http(policy::Scheme::Https, policy::kHttpPort, policy::Method::Get, "/"),
           http(policy::Scheme::Http, 8080, policy::Method::Get, "/")}) {
    const std::string text = "version = 1\n\n" + policy::line_to_add(operation) + "\n";
    const auto policy = parse_policy(text, "sallyport.toml", {});
    ASSERT_TRUE(policy) << text << joined(policy.error());
    const auto grant = make_grant(*policy, {}, {});
    ASSERT_TRUE(grant) << text << joined(grant.error());
    EXPECT_TRUE(policy::decide(*grant, operation).allowed()) << text;
  }
}

TEST(LineToAdd, IsNoneWhereNoRuleHelps) {
  for (const policy::Operation& operation : std::vector<policy::Operation>{
           policy::Connect{host("ns.test"), 53}, policy::Connect{host("ns.test"), 853},
           policy::ResolveName{host("db.internal")},
           http(policy::Scheme::Https, 443, policy::Method::Get, "/a/b/info/refs")}) {
    EXPECT_EQ(policy::line_to_add(operation), "");
  }
}

}  // namespace
}  // namespace sallyport::config
