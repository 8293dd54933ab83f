#include "session/service_channel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace sallyport::session {
namespace {

// In each session it says its process id, and then the first 8 bytes of whatever it is sent; "bye" and it
// ends the session.
constexpr const char* kEcho = R"(#!/usr/bin/python3
import os, select, socket
control = socket.socket(fileno=3)
assert control.recv(65536)[1] == 64
sessions = []
while True:
    for ready in select.select([control, *sessions], [], [])[0]:
        if ready is control:
            message, fds, _, _ = socket.recv_fds(control, 65536, 1)
            if not message:
                raise SystemExit
            sessions.append(socket.socket(fileno=fds[0]))
            sessions[-1].send(str(os.getpid()).encode())
            continue
        message = ready.recv(65536)
        if not message or message == b"bye":
            sessions.remove(ready)
            ready.close()
        else:
            ready.send(message[:8])
)";

// One session's side, and what it hears.
struct Session {
  Session(os::EventLoop& loop, ServiceProcess& process)
      : channel(loop, process,
                {.on_start = [this] { ++starts; },
                 .on_packet =
                     [this, &loop](const os::Packet& packet) {
                       heard.push_back(packet.bytes);
                       if (heard.size() == wanted) loop.stop();
                     },
                 .on_death =
                     [this, &loop](const std::string& how) {
                       deaths.push_back(how);
                       loop.stop();
                     },
                 .on_failure =
                     [this, &loop](const Error&) {
                       failed = true;
                       loop.stop();
                     }}) {}

  int starts = 0;
  std::vector<std::string> heard;
  std::size_t wanted = 1;
  std::vector<std::string> deaths;
  bool failed = false;
  ServiceChannel channel;
};

class ServiceChannelTest : public testing::Test {
 protected:
  // A failing test ends by this; one that passes never waits for it.
  static constexpr std::chrono::milliseconds kGivenUp{30'000};
  static constexpr std::size_t kLarge = 32'000;

  ServiceChannelTest() {
    // It is looked for beside this very program.
    std::ofstream(program_) << kEcho;
    EXPECT_EQ(::chmod(program_.c_str(), 0700), 0);
    loop_.after(kGivenUp, [this] { loop_.stop(); });
    EXPECT_TRUE(process_.start(std::nullopt, false));
    pid_ = hear_pid(first_);
  }
  ~ServiceChannelTest() override { std::filesystem::remove(program_); }

  // Of the process that has the session from now on.
  pid_t hear_pid(Session& session) {
    session.heard.clear();
    session.wanted = 1;
    session.channel.open();
    EXPECT_TRUE(loop_.run());
    const pid_t pid = session.heard.empty() ? -1 : std::stoi(session.heard.front());
    session.heard.clear();
    return pid;
  }
  void send(std::size_t number) {
    std::string message = std::to_string(10'000'000 + number);
    message.resize(kLarge, '.');
    first_.channel.send(message);
  }

  std::string name_ = "echo-" + std::to_string(::getpid());
  std::filesystem::path program_ = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name_;
  os::EventLoop loop_;
  ServiceProcess process_{loop_, name_};
  Session first_{loop_, process_};
  pid_t pid_ = -1;
};

TEST_F(ServiceChannelTest, WaitsForOneThatIsBusy) {
  ASSERT_GT(pid_, 0);
  ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
  // More than its socket holds.
  first_.wanted = 40;
  for (std::size_t i = 0; i < first_.wanted; ++i) send(i);
  ASSERT_EQ(::kill(pid_, SIGCONT), 0);
  ASSERT_TRUE(loop_.run());
  EXPECT_TRUE(first_.deaths.empty());
  ASSERT_EQ(first_.heard.size(), first_.wanted);
  for (std::size_t i = 0; i < first_.wanted; ++i) {
    EXPECT_EQ(first_.heard[i], std::to_string(10'000'000 + i));
  }
}

TEST_F(ServiceChannelTest, KillsOneThatLeavesTooMuchWaiting) {
  ASSERT_GT(pid_, 0);
  ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
  for (std::size_t i = 0; i < 2 * ServiceChannel::kMaxQueued; ++i) send(i);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(first_.deaths, std::vector<std::string>{name_ + " died (signal 9)"});
}

TEST_F(ServiceChannelTest, TellsEverySessionOfADeathAndOpensItInTheNextProcess) {
  Session second(loop_, process_);
  ASSERT_EQ(hear_pid(second), pid_);
  ASSERT_EQ(::kill(pid_, SIGKILL), 0);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(first_.deaths, std::vector<std::string>{name_ + " died (signal 9)"});
  EXPECT_EQ(second.deaths, first_.deaths);
  first_.heard.clear();
  second.heard.clear();
  for (int i = 0; i < 2 && (first_.heard.empty() || second.heard.empty()); ++i) EXPECT_TRUE(loop_.run());
  EXPECT_NE(first_.heard, std::vector<std::string>{std::to_string(pid_)});
  EXPECT_EQ(second.heard, first_.heard);
  EXPECT_EQ(first_.starts, 2);
  EXPECT_EQ(second.starts, 2);
}

TEST_F(ServiceChannelTest, GivesItsSessionsUpWhenItKeepsDyingAndServesOthersStill) {
  first_.heard = {std::to_string(pid_)};
  while (!first_.failed) {
    if (!first_.heard.empty()) {
      ASSERT_EQ(::kill(std::stoi(first_.heard.back()), SIGKILL), 0);
      first_.heard.clear();
    }
    ASSERT_TRUE(loop_.run());
  }
  EXPECT_EQ(first_.deaths.size(), static_cast<std::size_t>(ServiceProcess::kMaxRestarts));
  Session second(loop_, process_);
  EXPECT_GT(hear_pid(second), 0);
}

TEST_F(ServiceChannelTest, OpensASessionAgainThatItsProcessGaveUp) {
  Session second(loop_, process_);
  ASSERT_EQ(hear_pid(second), pid_);
  first_.channel.send("bye");
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(first_.deaths, std::vector<std::string>{name_ + " gave the session up"});
  EXPECT_EQ(hear_pid(first_), pid_);
  EXPECT_TRUE(second.deaths.empty());
  EXPECT_EQ(second.starts, 1);
}

TEST_F(ServiceChannelTest, EndsASessionAndSaysWhenNothingIsLeftOfIt) {
  bool ended = false;
  first_.channel.end([&] {
    ended = true;
    loop_.stop();
  });
  EXPECT_FALSE(ended);
  ASSERT_TRUE(loop_.run());
  EXPECT_TRUE(ended);
  EXPECT_TRUE(first_.deaths.empty());
  EXPECT_FALSE(first_.channel.running());
  EXPECT_EQ(hear_pid(first_), pid_);
}

TEST_F(ServiceChannelTest, HearsTheLastWordsOfASessionThatIsOver) {
  first_.wanted = 1'000;
  constexpr std::size_t kWords = 20;
  for (std::size_t i = 0; i < kWords; ++i) first_.channel.send("word");
  first_.channel.finish([&] { loop_.stop(); });
  first_.channel.send("too late");
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(first_.heard, std::vector<std::string>(kWords, "word"));
  EXPECT_TRUE(first_.deaths.empty());
  EXPECT_FALSE(first_.channel.running());
}

TEST_F(ServiceChannelTest, DoesNotWaitForLastWordsForEver) {
  ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
  first_.channel.finish([&] { loop_.stop(); });
  ASSERT_TRUE(loop_.run());
  EXPECT_FALSE(first_.channel.running());
  ASSERT_EQ(::kill(pid_, SIGCONT), 0);
  Session second(loop_, process_);
  EXPECT_EQ(hear_pid(second), pid_) << "it was not killed";
}

TEST_F(ServiceChannelTest, TakesTheDeathOfItsProcessForTheEndOfASession) {
  ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
  bool ended = false;
  first_.channel.end([&] {
    ended = true;
    loop_.stop();
  });
  ASSERT_EQ(::kill(pid_, SIGKILL), 0);
  ASSERT_TRUE(loop_.run());
  EXPECT_TRUE(ended);
  EXPECT_TRUE(first_.deaths.empty());
}

}  // namespace
}  // namespace sallyport::session
