#include "control/protocol.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace sallyport::control {
namespace {

using namespace std::string_literals;

constexpr std::size_t kMaxText = 32 * 1024;

std::vector<ToWarden> all_to_warden() {
  return {Start{}, Serve{}, Signal{SIGINT}, Signal{64}};
}

std::vector<FromWarden> all_from_warden() {
  return {Notice{"one line"},
          Notice{""},
          Started{},
          Stopped{},
          Finished{0, "nothing refused"},
          Finished{255, "\0\xff\n"s},
          Failed{"1"},
          Failed{"two\nlines"},
          Serving{{"127.0.0.1:1", "[::1]:2"}},
          Reloaded{"sallyport.toml:1: no"}};
}

session::Request full_request() {
  return {.command = {"git", "", "clone\nit"},
          .working_directory = "/home/user/work",
          .home = "/home/user",
          .sources = {.policy_path = "/home/user/work/sallyport.toml",
                      .policy = config::Presence::Named,
                      .config_path = "/home/user/.config/sallyport/config.toml",
                      .config = config::Presence::Usual,
                      .git_options = {"github.com/acme/widget:push"},
                      .trust_folder = "/home/user/.local/state/sallyport/trust"},
          .mounts = {"/data:ro", "/more"},
          .audit_path = "/home/user/audit.jsonl",
          .environment = {"LANG=C", "NUL=a\0b"s},
          .extra_environment = {"CI=1"},
          .state_folder = "/home/anna/.local/state/sallyport",
          .private_git = true,
          .terminal_on_stdin = true};
}

TEST(ControlProtocol, ReadsWhatTheCommandLineWrites) {
  for (const ToWarden& message : all_to_warden()) {
    const auto read = decode_to_warden(encode(message));
    ASSERT_TRUE(read) << message.index();
    EXPECT_EQ(read->index(), message.index());
    EXPECT_EQ(encode(*read), encode(message));
  }
  const auto signal = decode_to_warden(encode(ToWarden(Signal{SIGTERM})));
  ASSERT_TRUE(signal);
  EXPECT_EQ(std::get<Signal>(*signal).number, SIGTERM);
}

TEST(ControlProtocol, ReadsWhatTheWardenWrites) {
  for (const FromWarden& message : all_from_warden()) {
    const auto read = decode_from_warden(encode(message));
    ASSERT_TRUE(read) << message.index();
    EXPECT_EQ(read->index(), message.index());
    EXPECT_EQ(encode(*read), encode(message));
  }
  const auto finished = decode_from_warden(encode(FromWarden(Finished{137, "2 requests allowed"})));
  ASSERT_TRUE(finished);
  EXPECT_EQ(std::get<Finished>(*finished).exit_code, 137);
  EXPECT_EQ(std::get<Finished>(*finished).summary, "2 requests allowed");
  const auto failed = decode_from_warden(encode(FromWarden(Failed{"why"})));
  ASSERT_TRUE(failed);
  EXPECT_EQ(std::get<Failed>(*failed).text, "why");
}

TEST(ControlProtocol, RefusesWhatTheOtherSideMaySay) {
  for (const FromWarden& message : all_from_warden()) {
    const auto read = decode_to_warden(encode(message));
    ASSERT_FALSE(read) << message.index();
    EXPECT_EQ(read.error().reason, Reason::Internal);
  }
  for (const ToWarden& message : all_to_warden()) {
    const auto read = decode_from_warden(encode(message));
    ASSERT_FALSE(read) << message.index();
    EXPECT_EQ(read.error().reason, Reason::Internal);
  }
}

TEST(ControlProtocol, RefusesMessagesThatAreCutOrLonger) {
  for (const ToWarden& message : all_to_warden()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_to_warden(bytes.substr(0, size))) << message.index() << " cut at " << size;
    }
    EXPECT_FALSE(decode_to_warden(bytes + '\0')) << message.index();
  }
  for (const FromWarden& message : all_from_warden()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_from_warden(bytes.substr(0, size))) << message.index() << " cut at " << size;
    }
    EXPECT_FALSE(decode_from_warden(bytes + '\0')) << message.index();
  }
}

TEST(ControlProtocol, RefusesTagsThatMeanNothing) {
  for (const std::string& bytes : {"\0"s, "\x0b"s, "\xff"s, "\x0b\0\0\0\0"s}) {
    EXPECT_FALSE(decode_to_warden(bytes));
    EXPECT_FALSE(decode_from_warden(bytes));
  }
}

TEST(ControlProtocol, RefusesNumbersThatAreNoSignalOrExitCode) {
  for (const int number : {0, 65, 255, 256, -1, 65'536 + SIGINT}) {
    EXPECT_FALSE(decode_to_warden(encode(ToWarden(Signal{number})))) << number;
  }
  EXPECT_TRUE(decode_to_warden(encode(ToWarden(Signal{1}))));
  EXPECT_TRUE(decode_to_warden(encode(ToWarden(Signal{64}))));
  for (const int number : {256, -1, 65'536 + SIGINT}) {
    EXPECT_FALSE(decode_from_warden(encode(FromWarden(Finished{number, ""})))) << number;
  }
}

TEST(ControlProtocol, CutsTextsInsteadOfLosingThem) {
  const std::string endless(kMaxText + 1, 'x');
  const auto notice = decode_from_warden(encode(FromWarden(Notice{endless})));
  const auto finished = decode_from_warden(encode(FromWarden(Finished{1, endless})));
  const auto failed = decode_from_warden(encode(FromWarden(Failed{endless})));
  ASSERT_TRUE(notice && finished && failed);
  EXPECT_EQ(std::get<Notice>(*notice).text.size(), kMaxText);
  EXPECT_EQ(std::get<Finished>(*finished).summary.size(), kMaxText);
  EXPECT_EQ(std::get<Failed>(*failed).text.size(), kMaxText);
}

TEST(ControlProtocol, RefusesATextThatNoEncoderWouldWrite) {
  // Tag, length and text of a Notice.
  EXPECT_TRUE(decode_from_warden("\x03\x00\x00\x80\x00"s + std::string(kMaxText, 'x')));
  EXPECT_FALSE(decode_from_warden("\x03\x00\x00\x80\x01"s + std::string(kMaxText + 1, 'x')));
}

TEST(ControlRequest, ReadsWhatItWrote) {
  const session::Request request = full_request();
  const auto read = decode_request(encode_request(request));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->command, request.command);
  EXPECT_EQ(read->working_directory, request.working_directory);
  EXPECT_EQ(read->home, request.home);
  EXPECT_EQ(read->sources.policy_path, request.sources.policy_path);
  EXPECT_EQ(read->sources.policy, request.sources.policy);
  EXPECT_EQ(read->sources.config_path, request.sources.config_path);
  EXPECT_EQ(read->sources.config, request.sources.config);
  EXPECT_EQ(read->sources.git_options, request.sources.git_options);
  EXPECT_EQ(read->sources.trust_folder, request.sources.trust_folder);
  EXPECT_EQ(read->mounts, request.mounts);
  EXPECT_EQ(read->audit_path, request.audit_path);
  EXPECT_EQ(read->environment, request.environment);
  EXPECT_EQ(read->extra_environment, request.extra_environment);
  EXPECT_EQ(read->state_folder, request.state_folder);
  EXPECT_EQ(read->private_git, request.private_git);
  EXPECT_EQ(read->terminal_on_stdin, request.terminal_on_stdin);
}

TEST(ControlServeRequest, ReadsWhatItWroteAndNothingElse) {
  session::ServeRequest request;
  request.sources = full_request().sources;
  request.audit_path = "/home/user/audit.jsonl";
  request.ca_file = "/home/user/ca.pem";
  request.doors = {{wire::HostDoorUse::Proxy, "127.0.0.1:0"},
                   {wire::HostDoorUse::Fixed, "127.0.0.1:1=https://forge.test"}};
  const std::string bytes = encode_serve_request(request);
  const auto read = decode_serve_request(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode_serve_request(*read), bytes);
  EXPECT_EQ(read->ca_file, request.ca_file);
  ASSERT_EQ(read->doors.size(), 2U);
  EXPECT_EQ(read->doors[1].text, request.doors[1].text);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_serve_request(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_serve_request(bytes + "x"));
}

TEST(ControlRequest, IsRefusedWhenCutOrLonger) {
  const std::string bytes = encode_request(full_request());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode_request(bytes.substr(0, size));
    ASSERT_FALSE(read) << "cut at " << size;
    EXPECT_EQ(read.error().reason, Reason::Internal);
  }
  EXPECT_FALSE(decode_request(bytes + '\0'));
}

TEST(ControlRequest, IsRefusedWithAValueThatMeansNothing) {
  const std::string empty = encode_request({});
  ASSERT_TRUE(decode_request(empty));
  // Behind four empty lists or texts, and behind one more; and the last byte.
  const std::size_t policy_presence = 16;
  const std::size_t config_presence = 21;
  for (const std::size_t at : {policy_presence, config_presence, empty.size() - 1}) {
    std::string bytes = empty;
    bytes[at] = 1;
    EXPECT_TRUE(decode_request(bytes)) << at;
    bytes[at] = 2;
    EXPECT_FALSE(decode_request(bytes)) << at;
  }
}

TEST(ControlRequest, IsRefusedWithMoreStringsThanTheLimit) {
  session::Request request;
  request.command.resize(100'000);
  EXPECT_TRUE(decode_request(encode_request(request)));
  request.command.emplace_back();
  EXPECT_FALSE(decode_request(encode_request(request)));
}

TEST(ControlRequest, IsRefusedWhenACountOrALengthLies) {
  std::string bytes = encode_request({});
  bytes.replace(0, 4, "\xff\xff\xff\xff");  // the command's count
  EXPECT_FALSE(decode_request(bytes));
  bytes = encode_request({});
  bytes.replace(4, 4, "\xff\xff\xff\xff");  // the working directory's length
  EXPECT_FALSE(decode_request(bytes));
}

}  // namespace
}  // namespace sallyport::control
