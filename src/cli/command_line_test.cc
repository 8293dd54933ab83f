#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sallyport::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

struct Printed {
  Command command;
  std::string out;
  std::string err;
};

Printed parse(const Words& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Command command = parse_command_line(arguments);
  std::string out = testing::internal::GetCapturedStdout();
  return {std::move(command), std::move(out), testing::internal::GetCapturedStderr()};
}

// The options of a command line that is one, and about which nothing is printed.
template <class Options>
Options read(const Words& arguments) {
  const Printed printed = parse(arguments);
  EXPECT_EQ(printed.out, "");
  EXPECT_EQ(printed.err, "");
  const auto* options = std::get_if<Options>(&printed.command);
  if (options == nullptr) {
    ADD_FAILURE() << "read as something else: " << testing::PrintToString(arguments);
    return {};
  }
  return *options;
}

TEST(CommandLine, RunHasItsDefaults) {
  const auto run = read<RunOptions>({"run", "--", "make"});
  EXPECT_THAT(run.command, ElementsAre("make"));
  EXPECT_FALSE(run.files.policy || run.files.config || run.audit);
  EXPECT_THAT(run.git, IsEmpty());
  EXPECT_THAT(run.mounts, IsEmpty());
  EXPECT_THAT(run.environment, IsEmpty());
  EXPECT_EQ(run.verbosity, Verbosity::Normal);
}

TEST(CommandLine, ServeWantsADoor) {
  EXPECT_EQ(std::get<Done>(parse({"serve"}).command).exit_code, kExitUsage);
  EXPECT_THAT(parse({"serve", "--json"}).err, HasSubstr("--proxy, --tls, --http, --dns or --door"));
  const auto serve =
      read<ServeOptions>({"serve", "--proxy", "127.0.0.1:1", "--door", "127.0.0.1:2=https://a.test", "--door",
                          "127.0.0.1:3=https://b.test", "--ca-file", "ca.pem", "--json"});
  EXPECT_EQ(serve.proxy, "127.0.0.1:1");
  EXPECT_FALSE(serve.tls || serve.http || serve.dns || serve.audit);
  EXPECT_THAT(serve.doors, ElementsAre("127.0.0.1:2=https://a.test", "127.0.0.1:3=https://b.test"));
  EXPECT_EQ(serve.ca_file, "ca.pem");
  EXPECT_EQ(serve.format, Format::Json);
}

TEST(CommandLine, PolicyTrustAsksUnlessToldOtherwise) {
  const auto plain = read<TrustOptions>({"policy", "trust"});
  EXPECT_FALSE(plain.files.policy || plain.files.config);
  EXPECT_EQ(plain.action, TrustAction::Trust);
  EXPECT_EQ(plain.answer, Answer::Ask);
  EXPECT_EQ(plain.format, Format::Text);
  const auto all = read<TrustOptions>({"policy", "trust", "p.toml", "--config", "c.toml", "--yes", "--json"});
  EXPECT_EQ(all.files.policy, "p.toml");
  EXPECT_EQ(all.files.config, "c.toml");
  EXPECT_EQ(all.answer, Answer::Yes);
  EXPECT_EQ(all.format, Format::Json);
  EXPECT_EQ(read<TrustOptions>({"policy", "trust", "--list"}).action, TrustAction::List);
  EXPECT_EQ(read<TrustOptions>({"policy", "trust", "--revoke", "p.toml"}).action, TrustAction::Revoke);
  for (const Words& words :
       {Words{"policy", "trust", "--list", "--revoke"}, Words{"policy", "trust", "--yes", "--revoke"},
        Words{"policy", "trust", "--yes", "--list"}, Words{"policy", "trust", "a", "b"}}) {
    const auto printed = parse(words);
    const auto* done = std::get_if<Done>(&printed.command);
    ASSERT_NE(done, nullptr) << testing::PrintToString(words);
    EXPECT_EQ(done->exit_code, kExitUsage);
  }
}

TEST(CommandLine, RunTakesEveryOption) {
  const auto run = read<RunOptions>({"run",          "--policy",
                                     "p.toml",       "--config=c.toml",
                                     "--audit",      "a.jsonl",
                                     "--git",        "github.com/acme/widget:push",
                                     "--git",        "github.com/acme/lib",
                                     "--mount",      "/data:ro",
                                     "--mount=more", "--env",
                                     "CI=1",         "--env",
                                     "TERM",         "-q",
                                     "--",           "make",
                                     "test"});
  EXPECT_EQ(run.files.policy, "p.toml");
  EXPECT_EQ(run.files.config, "c.toml");
  EXPECT_EQ(run.audit, "a.jsonl");
  EXPECT_THAT(run.git, ElementsAre("github.com/acme/widget:push", "github.com/acme/lib"));
  EXPECT_THAT(run.mounts, ElementsAre("/data:ro", "more"));
  EXPECT_THAT(run.environment, ElementsAre("CI=1", "TERM"));
  EXPECT_EQ(run.verbosity, Verbosity::Quiet);
  EXPECT_THAT(run.command, ElementsAre("make", "test"));
  EXPECT_EQ(read<RunOptions>({"run", "--verbose", "--", "x"}).verbosity, Verbosity::Verbose);
}

TEST(CommandLine, RunTakesAValueAsItIsWritten) {
  for (const char* value : {"A=x,y", "A=[x,y]", "[x,y]", "A=-1", "A=a b", "A=\"q\"", "A=", "A=--", "A=%%"}) {
    EXPECT_THAT(read<RunOptions>({"run", "--env", value, "--", "x"}).environment, ElementsAre(value))
        << value;
    EXPECT_THAT(read<RunOptions>({"run", "--mount", value, "--", "x"}).mounts, ElementsAre(value)) << value;
  }
}

TEST(CommandLine, CommandBehindTheSeparatorIsNotLookedAt) {
  const std::vector<Words> commands = {{"--help"},      {"-q", "--git", "x"}, {"a", "--", "b"},
                                       {"--", "a"},     {"run", "--", "x"},   {"", "a"},
                                       {"policy", "b"}, {"--version"}};
  for (const Words& command : commands) {
    Words arguments = {"run", "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const auto run = read<RunOptions>(arguments);
    EXPECT_EQ(run.command, command);
    EXPECT_EQ(run.verbosity, Verbosity::Normal);
    EXPECT_THAT(run.git, IsEmpty());
  }
}

TEST(CommandLine, CheckIsRead) {
  const auto plain = read<CheckOptions>({"policy", "check"});
  EXPECT_FALSE(plain.files.policy || plain.files.config);
  EXPECT_EQ(plain.format, Format::Text);
  const auto full = read<CheckOptions>({"policy", "check", "p.toml", "--config", "c.toml", "--json"});
  EXPECT_EQ(full.files.policy, "p.toml");
  EXPECT_EQ(full.files.config, "c.toml");
  EXPECT_EQ(full.format, Format::Json);
}

TEST(CommandLine, ExplainIsRead) {
  const auto url = read<ExplainOptions>({"policy", "explain", "https://github.com/acme/widget"});
  EXPECT_EQ(url.url, "https://github.com/acme/widget");
  EXPECT_FALSE(url.push || url.method);
  EXPECT_EQ(url.format, Format::Text);
  const auto push = read<ExplainOptions>({"policy", "explain", "--push", "github.com/acme/widget", "--policy",
                                          "p.toml", "--config", "c.toml", "--json"});
  EXPECT_EQ(push.url, "");
  EXPECT_EQ(push.push, "github.com/acme/widget");
  EXPECT_EQ(push.files.policy, "p.toml");
  EXPECT_EQ(push.files.config, "c.toml");
  EXPECT_EQ(push.format, Format::Json);
  const auto post = read<ExplainOptions>({"policy", "explain", "--method", "POST", "https://api.example/x"});
  EXPECT_EQ(post.method, policy::Method::Post);
}

TEST(CommandLine, ThatCannotBeReadIsAUsageErrorOnStandardError) {
  const struct {
    Words arguments;
    const char* says;
  } cases[] = {
      {{}, "subcommand"},
      {{"--"}, "subcommand"},
      {{"rum", "--", "x"}, "no command 'rum'"},
      {{"run"}, "-- COMMAND"},
      {{"run", "--"}, "-- COMMAND"},
      {{"run", "make"}, "make"},
      {{"run", "make", "--", "x"}, "make"},
      {{"run", "--frobnicate", "--", "x"}, "--frobnicate"},
      {{"run", "--pol", "p.toml", "--", "x"}, "--pol"},
      {{"run", "--git", "--", "x"}, "--git"},
      {{"run", "--git", "github.com/a/b", "github.com/a/c", "--", "x"}, "github.com/a/c"},
      {{"run", "--mount", "--", "x"}, "--mount"},
      {{"run", "--env", "--", "x"}, "--env"},
      {{"run", "--policy", "a", "--policy", "b", "--", "x"}, "--policy"},
      {{"run", "--quiet", "--verbose", "--", "x"}, "--quiet"},
      {{"run", "-v", "-q", "--", "x"}, "--quiet"},
      {{"run", "--json", "--", "x"}, "--json"},
      {{"policy"}, "subcommand"},
      {{"policy", "check", "a", "b"}, "b"},
      {{"policy", "check", "--", "a"}, "--"},
      {{"policy", "check", "--git", "github.com/a/b"}, "--git"},
      {{"policy", "explain"}, "URL or --push"},
      {{"policy", "explain", "--"}, "--"},
      {{"policy", "explain", "--push", "h/o/r", "https://h/o/r"}, "--push"},
      {{"policy", "explain", "https://h/o/r", "https://h/o/s"}, "https://h/o/s"},
      {{"policy", "explain", "https://h/o/r", "--method", "TRACE"}, "must be one of GET, HEAD"},
      {{"policy", "explain", "--push", "h/o/r", "--method", "GET"}, "--method"},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(testing::PrintToString(each.arguments));
    const Printed printed = parse(each.arguments);
    const auto* done = std::get_if<Done>(&printed.command);
    ASSERT_NE(done, nullptr);
    EXPECT_EQ(done->exit_code, kExitUsage);
    EXPECT_EQ(printed.out, "");
    EXPECT_THAT(printed.err, HasSubstr(each.says));
  }
}

TEST(CommandLine, HelpAndVersionAreNoErrors) {
  const struct {
    Words arguments;
    const char* says;
  } cases[] = {
      {{"--help"}, "Exit codes:"},
      {{"-h"}, "sallyport run -- git clone"},
      {{"run", "--help"}, "--mount"},
      {{"run", "--help", "--", "x"}, "--mount"},
      {{"policy", "--help"}, "explain"},
      {{"policy", "check", "--help"}, "--json"},
      {{"policy", "explain", "--help"}, "--push"},
      {{"--version"}, "sallyport "},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(testing::PrintToString(each.arguments));
    const Printed printed = parse(each.arguments);
    const auto* done = std::get_if<Done>(&printed.command);
    ASSERT_NE(done, nullptr);
    EXPECT_EQ(done->exit_code, kExitOk);
    EXPECT_EQ(printed.err, "");
    EXPECT_THAT(printed.out, HasSubstr(each.says));
  }
}

TEST(CommandLine, GatewayStartNamesWhatTheDaemonIsGiven) {
  const auto plain = read<GatewayStartOptions>({"gateway", "start"});
  EXPECT_FALSE(plain.daemon.socket || plain.config || plain.state || plain.group);
  const auto all = read<GatewayStartOptions>(
      {"gateway", "start", "--socket", "s", "--config", "c", "--state", "d", "--group", "g"});
  EXPECT_EQ(all.daemon.socket, "s");
  EXPECT_EQ(all.config, "c");
  EXPECT_EQ(all.state, "d");
  EXPECT_EQ(all.group, "g");
  EXPECT_EQ(read<GatewayStopOptions>({"gateway", "stop", "--socket", "s"}).daemon.socket, "s");
}

}  // namespace
}  // namespace sallyport::cli
