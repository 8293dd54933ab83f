#include "session/consent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/trust_store.h"
#include "sandbox/folder_test.h"

namespace sallyport::session {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kOperator[] = "version = 1\n[credential.github]\nsource = { file = \"/run/keys/github\" }\n";
constexpr char kRule[] =
    "[[git]]\nrepo = \"github.com/acme/widget\"\naccess = \"push\"\ncredential = \"github\"\n";

config::PolicySource source(const std::string& text, std::size_t rules = 1) {
  config::PolicySource policy{"/home/me/widget/sallyport.toml", text, {}};
  for (std::size_t i = 0; i < rules; ++i) {
    policy.unapproved.push_back(
        {*policy::RepoPattern::parse("github.com/acme/r" + std::to_string(i), policy::HostKind::GitHub),
         i % 2 == 0 ? policy::Access::Push : policy::Access::Fetch,
         "github",
         {"sallyport.toml", static_cast<int>(i) + 3}});
  }
  return policy;
}

std::string changed(const std::string& before, const std::string& now, const ConsentLimits& limits = kShort) {
  return describe(source(now), {ConsentState::Changed, before}, limits);
}

TEST(Consent, ShowsWhatChangedAndWhatTheFileLetsASandboxDo) {
  EXPECT_EQ(changed("version = 1\n# old\n", "version = 1\n# new\n"),
            "/home/me/widget/sallyport.toml has changed since you trusted it:\n"
            "--- when you trusted it\n+++ now\n version = 1\n-# old\n+# new\n"
            "It lets a sandbox\n"
            "  fetch from and push to github.com/acme/r0 with the credential 'github' (line 3)\n");
  EXPECT_EQ(describe(source("x", 2), {ConsentState::Never, ""}, kShort),
            "/home/me/widget/sallyport.toml was never trusted.\n"
            "It lets a sandbox\n"
            "  fetch from and push to github.com/acme/r0 with the credential 'github' (line 3)\n"
            "  fetch from github.com/acme/r1 with the credential 'github' (line 4)\n");
}

TEST(Consent, ShowsAChangeOfTheLastLinesEndAlone) {
  EXPECT_THAT(changed("a", "a\n"), HasSubstr("-a\n\\ No newline at end of file\n+a\n"));
}

TEST(Consent, EscapesEveryByteThatATerminalCouldObey) {
  std::string hostile = "# ";
  for (int byte = 0; byte < 256; ++byte) hostile += static_cast<char>(byte);
  hostile += "\x1b[2J\x1b]52;c;cm0=\a\xe2\x80\xae\r\n";
  for (const std::string& text : {changed("", hostile), changed(hostile, "x\n")}) {
    for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 0x7f)) << int{c};
    EXPECT_THAT(text, HasSubstr("\\x1b"));
  }
  auto policy = source("x");
  policy.path = "/home/me/widget/\x1b[2J\n/sallyport.toml";
  EXPECT_THAT(stop_text({}, policy, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(stop_text({}, policy, {}),
              HasSubstr("sallyport policy trust $'/home/me/widget/\\x1b[2J\\x0a/sallyport.toml'"));
}

TEST(Consent, MasksWhatLooksLikeAToken) {
  const std::string token = "ghp_" + std::string(36, 'x');
  for (const std::string& text : {changed("", "# " + token + "\n"), changed("# " + token + "\n", "")}) {
    EXPECT_THAT(text, Not(HasSubstr("xxxx")));
    EXPECT_THAT(text, HasSubstr("# ghp_***"));
  }
  // Also one that the end of what is shown would cut into pieces.
  const std::string late = std::string(kShort.line_bytes - 10, '-') + token + "\n";
  EXPECT_THAT(changed("", late), Not(HasSubstr("ghp_xxx")));
}

TEST(Consent, IsBoundedAndSaysWhatIsLeftOut) {
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += "#" + std::to_string(i) + "\n";
  const std::string text = changed("", lines);
  EXPECT_THAT(text, HasSubstr("... 99940 more lines are not shown\n"));
  const std::string wide = changed("", std::string(1'000'000, '\x01'));
  EXPECT_LT(wide.size(), 1'000U);
  EXPECT_THAT(wide, HasSubstr("..."));

  const std::string rules = describe(source("x", 1'000), {}, kShort);
  EXPECT_THAT(rules, HasSubstr("and has 980 more such rules that are not shown\n"));
  // What goes to the command line is cut at 32 KiB, and the command to run stands at its end.
  std::string worst;
  for (int i = 0; i < 1'000; ++i) worst += std::string(1'000, '\xff') + "\n";
  const std::string stop = stop_text({}, source(worst, 10'000), {ConsentState::Changed, "x"});
  EXPECT_LT(stop.size(), 20'000U);
  EXPECT_TRUE(stop.ends_with("\n  sallyport policy trust /home/me/widget/sallyport.toml")) << stop;
}

TEST(Consent, NamesTheCommandAsAShellTakesIt) {
  config::Sources sources;
  auto policy = source("x");
  policy.path = "/my work/it's.toml";
  EXPECT_EQ(trust_command(sources, policy), "sallyport policy trust '/my work/it'\\''s.toml'");
  sources.config = config::Presence::Named;
  sources.config_path = "/etc/$(id).toml";
  policy.path = "/home/me/widget/sallyport.toml";
  EXPECT_EQ(trust_command(sources, policy),
            "sallyport policy trust --config '/etc/$(id).toml' /home/me/widget/sallyport.toml");
}

// What one policy needs, from the files to the state.
class ConsentFiles : public testing::Test {
 protected:
  ConsentState state(const std::string& policy_text, const std::string& approvals = "") {
    const std::string policy = folder_.path() + "/sallyport.toml";
    const std::string config = folder_.path() + "/config.toml";
    write(policy, policy_text);
    write(config, kOperator + approvals);
    sources_.policy_path = policy;
    sources_.config_path = config;
    sources_.trust_folder = folder_.path() + "/trust";
    loaded_ = config::load(sources_);
    EXPECT_TRUE(loaded_) << config::text_of(loaded_.error());
    const auto consent = find_consent(*loaded_, sources_.trust_folder);
    EXPECT_TRUE(consent) << consent.error().detail;
    return consent->state;
  }
  void trust_it() {
    ASSERT_TRUE(
        config::TrustStore(sources_.trust_folder).trust(loaded_->policy->path, loaded_->policy->text));
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    std::filesystem::permissions(path, std::filesystem::perms(0600));
  }

  sandbox::TestFolder folder_;
  config::Sources sources_;
  std::expected<config::Loaded, config::Problems> loaded_;
};

TEST_F(ConsentFiles, IsNeededForACredentialThatNoApprovalCovers) {
  const std::string policy = std::string("version = 1\n") + kRule;
  const auto approve = [](const char* repo, const char* access) {
    return std::string("[[approve]]\nrepo = \"") + repo + "\"\naccess = \"" + access +
           "\"\ncredential = \"github\"\n";
  };
  EXPECT_EQ(state("version = 1\n"), ConsentState::NotNeeded);
  EXPECT_EQ(state("version = 1\n[[git]]\nrepo = \"github.com/*/*\"\naccess = \"push\"\n"),
            ConsentState::NotNeeded);
  EXPECT_EQ(state(policy), ConsentState::Never);
  EXPECT_EQ(state(policy, approve("github.com/acme/*", "push")), ConsentState::NotNeeded);
  EXPECT_EQ(state(policy, approve("github.com/acme/*", "fetch")), ConsentState::Never);
  EXPECT_EQ(state(policy, approve("github.com/other/*", "push")), ConsentState::Never);
  // One rule beyond the approved is enough.
  const std::string more =
      "[[git]]\nrepo = \"github.com/other/x\"\naccess = \"fetch\"\ncredential = \"github\"\n";
  EXPECT_EQ(state(policy + more, approve("github.com/acme/*", "push")), ConsentState::Never);
  EXPECT_EQ(loaded_->policy->unapproved.size(), 1U);
}

TEST_F(ConsentFiles, IsForTheseBytesAtThisPlace) {
  const std::string policy = std::string("version = 1\n") + kRule;
  ASSERT_EQ(state(policy), ConsentState::Never);
  trust_it();
  EXPECT_EQ(state(policy), ConsentState::Given);
  EXPECT_EQ(state(policy + "\n"), ConsentState::Changed);
  EXPECT_EQ(state(policy), ConsentState::Given);
  std::filesystem::create_directory(folder_.path() + "/copy");
  write(folder_.path() + "/copy/sallyport.toml", policy);
  sources_.policy_path = folder_.path() + "/copy/sallyport.toml";
  const auto copy = config::load(sources_);
  ASSERT_TRUE(copy);
  EXPECT_EQ(find_consent(*copy, sources_.trust_folder)->state, ConsentState::Never);
}

TEST_F(ConsentFiles, IsFoundThroughALinkByTheFileItself) {
  const std::string policy = std::string("version = 1\n") + kRule;
  ASSERT_EQ(state(policy), ConsentState::Never);
  trust_it();
  const std::string link = folder_.path() + "/link";
  std::filesystem::create_directory_symlink(folder_.path(), link);
  sources_.policy_path = link + "/sallyport.toml";
  auto linked = config::load(sources_);
  ASSERT_TRUE(linked);
  EXPECT_EQ(find_consent(*linked, sources_.trust_folder)->state, ConsentState::Given);
  // The same link to another file, of the same bytes: trusted is where it leads.
  std::filesystem::create_directory(folder_.path() + "/planted");
  write(folder_.path() + "/planted/sallyport.toml", policy);
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(folder_.path() + "/planted", link);
  linked = config::load(sources_);
  ASSERT_TRUE(linked);
  EXPECT_EQ(find_consent(*linked, sources_.trust_folder)->state, ConsentState::Never);
}

}  // namespace
}  // namespace sallyport::session
