#include "session/service_process.h"

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

// Says its process id, and then the first 8 bytes of whatever it is sent.
constexpr const char* kEcho = R"(#!/usr/bin/python3
import os, socket
control = socket.socket(fileno=3)
control.send(str(os.getpid()).encode())
while message := control.recv(65536):
    control.send(message[:8])
)";

class ServiceProcessTest : public testing::Test {
 protected:
  // A failing test ends by this; one that passes never waits for it.
  static constexpr std::chrono::milliseconds kGivenUp{30'000};
  static constexpr std::size_t kLarge = 32'000;

  ServiceProcessTest() {
    // It is looked for beside this very program.
    std::ofstream(program_) << kEcho;
    EXPECT_EQ(::chmod(program_.c_str(), 0700), 0);
    loop_.after(kGivenUp, [this] { loop_.stop(); });
    EXPECT_TRUE(process_.start());
    EXPECT_TRUE(loop_.run());
    if (!heard_.empty()) pid_ = std::stoi(heard_.front());
    heard_.clear();
  }
  ~ServiceProcessTest() override {
    process_.stop();
    std::filesystem::remove(program_);
  }

  void send(std::size_t number) {
    std::string message = std::to_string(10'000'000 + number);
    message.resize(kLarge, '.');
    process_.send(message);
  }

  std::string name_ = "echo-" + std::to_string(::getpid());
  std::filesystem::path program_ = std::filesystem::read_symlink("/proc/self/exe").parent_path() / name_;
  os::EventLoop loop_;
  std::vector<std::string> heard_;
  std::size_t wanted_ = 1;
  int deaths_ = 0;
  pid_t pid_ = -1;
  ServiceProcess process_{loop_,
                          name_,
                          std::nullopt,
                          {.on_start = [] {},
                           .on_packet =
                               [this](const os::Packet& packet) {
                                 heard_.push_back(packet.bytes);
                                 if (heard_.size() == wanted_) loop_.stop();
                               },
                           .on_death =
                               [this](const std::string&) {
                                 ++deaths_;
                                 loop_.stop();
                               },
                           .on_failure = [this](const Error&) { loop_.stop(); }}};
};

TEST_F(ServiceProcessTest, WaitsForOneThatIsBusy) {
  ASSERT_GT(pid_, 0);
  ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
  // More than its socket holds.
  wanted_ = 40;
  for (std::size_t i = 0; i < wanted_; ++i) send(i);
  ASSERT_EQ(::kill(pid_, SIGCONT), 0);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(deaths_, 0);
  ASSERT_EQ(heard_.size(), wanted_);
  for (std::size_t i = 0; i < wanted_; ++i) EXPECT_EQ(heard_[i], std::to_string(10'000'000 + i));
}

TEST_F(ServiceProcessTest, KillsOneThatLeavesTooMuchWaiting) {
  ASSERT_GT(pid_, 0);
  ASSERT_EQ(::kill(pid_, SIGSTOP), 0);
  for (std::size_t i = 0; i < 2 * ServiceProcess::kMaxQueued; ++i) send(i);
  ASSERT_TRUE(loop_.run());
  EXPECT_EQ(deaths_, 1);
}

}  // namespace
}  // namespace sallyport::session
