#include "sandbox/init_protocol.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sallyport::sandbox {
namespace {

Phase1 some_phase1() {
  return {.terminal = Terminal::Stdin,
          .unreachable = {*os::endpoint_from("192.0.2.1", 443), *os::endpoint_from("2001:db8::1", 53)},
          .decoys = {.tcp = {*os::endpoint_from("127.0.0.1", 1)}, .udp = {}, .abstract_name = "decoy"},
          .mounts = {{.path = "/work space", .device = 1ULL << 40U, .inode = 7}},
          .canary = "canary-1"};
}

std::vector<ToInit> all_to_init() {
  return {some_phase1(),
          Phase2{.must_be_door = {*os::endpoint_from("192.0.2.1", 443)},
                 .decoys = {.tcp = {}, .udp = {*os::endpoint_from("::1", 9)}, .abstract_name = "decoy"},
                 .probe_line = "probe\n",
                 .door_line = "door\n"},
          Go{},
          ForwardSignal{7, SIGTERM},
          Resume{},
          Exec{3, Terminal::Stdin}};
}

std::vector<FromInit> all_from_init() {
  return {Passed{2},        Failed{Check::Door, "why"},      Started{},
          Stopped{SIGTSTP}, Exited{.command = 9, .code = 3}, Exited{.signal = 9},
          Refused{5, "why"}};
}

TEST(InitProtocol, ReadsWhatItWrote) {
  for (const ToInit& message : all_to_init()) {
    const auto read = decode_to_init(encode(message));
    ASSERT_TRUE(read.has_value()) << message.index();
    EXPECT_EQ(read->index(), message.index());
    EXPECT_EQ(encode(*read), encode(message));
  }
  for (const FromInit& message : all_from_init()) {
    const auto read = decode_from_init(encode(message));
    ASSERT_TRUE(read.has_value()) << message.index();
    EXPECT_EQ(encode(*read), encode(message));
  }
  const auto phase = std::get<Phase1>(*decode_to_init(encode(ToInit(some_phase1()))));
  EXPECT_EQ(phase.unreachable, some_phase1().unreachable);
  EXPECT_EQ(phase.mounts[0].device, 1ULL << 40U);
  EXPECT_EQ(phase.canary, "canary-1");
}

TEST(InitProtocol, RefusesWhatIsCutOrLonger) {
  for (const ToInit& message : all_to_init()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_to_init(bytes.substr(0, size)).has_value())
          << message.index() << " cut at " << size;
    }
    EXPECT_FALSE(decode_to_init(bytes + '\0').has_value());
  }
  for (const FromInit& message : all_from_init()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_from_init(bytes.substr(0, size)).has_value())
          << message.index() << " cut at " << size;
    }
    EXPECT_FALSE(decode_from_init(bytes + '\0').has_value());
  }
}

TEST(InitProtocol, RefusesValuesThatMeanNothing) {
  EXPECT_FALSE(decode_to_init(encode(ToInit(ForwardSignal{1, SIGSEGV}))).has_value());
  EXPECT_FALSE(decode_to_init(encode(ToInit(ForwardSignal{1, 0}))).has_value());
  EXPECT_FALSE(decode_to_init(encode(ToInit(Exec{.command = kOwnCommand}))).has_value());
  EXPECT_FALSE(decode_from_init(encode(FromInit(Refused{kOwnCommand, ""}))).has_value());
  EXPECT_FALSE(decode_from_init(encode(FromInit(Passed{3}))).has_value());
  EXPECT_FALSE(decode_from_init(encode(FromInit(Failed{static_cast<Check>(200), ""}))).has_value());
  EXPECT_FALSE(decode_from_init(encode(FromInit(Stopped{0}))).has_value());
  EXPECT_FALSE(decode_from_init(encode(FromInit(Exited{.code = 1, .signal = 9}))).has_value());
  EXPECT_FALSE(decode_from_init(encode(FromInit(Exited{.signal = 200}))).has_value());
  EXPECT_FALSE(decode_from_init(std::string("\x01\x09", 2)).has_value());
  EXPECT_FALSE(decode_from_init(std::string("\x02\x03", 2)).has_value());
}

TEST(InitProtocol, CutsAFailuresWordsInsteadOfLosingThem) {
  const auto read = decode_from_init(encode(FromInit(Failed{Check::Canary, std::string(100'000, 'x')})));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(std::get<Failed>(*read).detail.size(), 1024U);
}

TEST(InitProtocol, RefusesListsThatAreTooLong) {
  Phase1 phase = some_phase1();
  phase.unreachable.resize(kMaxListed + 1);
  EXPECT_FALSE(decode_to_init(encode(ToInit(phase))).has_value());
}

TEST(Workload, TravelsInAMemoryFile) {
  const Workload workload{.argv = {"a", "", std::string(200'000, 'b')}, .environment = {"X=1"}, .cwd = "/w"};
  const auto file = pack_workload(workload);
  ASSERT_TRUE(file.has_value());
  const auto read = unpack_workload(*file);
  ASSERT_TRUE(read.has_value()) << read.error().detail;
  EXPECT_EQ(read->argv, workload.argv);
  EXPECT_EQ(read->environment, workload.environment);
  EXPECT_EQ(read->cwd, workload.cwd);
  EXPECT_LT(::write(file->get(), "x", 1), 0) << "sealed";
}

TEST(Workload, RefusesWhatCannotRun) {
  EXPECT_FALSE(pack_workload({.argv = {std::string(kMaxWorkloadBytes, 'x')}, .environment = {}, .cwd = "/"}));
  for (const Workload& bad : {Workload{.argv = {"x"}, .environment = {}, .cwd = ""},
                              Workload{.argv = {std::string("a\0b", 3)}, .environment = {}, .cwd = "/"}}) {
    const auto file = pack_workload(bad);
    ASSERT_TRUE(file.has_value());
    EXPECT_FALSE(unpack_workload(*file).has_value());
  }
  const Fd empty(::memfd_create("empty", MFD_CLOEXEC));
  EXPECT_FALSE(unpack_workload(empty).has_value());
}

}  // namespace
}  // namespace sallyport::sandbox
