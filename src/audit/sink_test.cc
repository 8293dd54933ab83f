#include "audit/sink.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/random.h"

namespace sallyport::audit {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

Event event(Kind kind) {
  Event result;
  result.kind = kind;
  return result;
}

class SinkTest : public testing::Test {
 protected:
  SinkTest() : folder_(fs::temp_directory_path() / ("sallyport-sink-" + random_hex(8))) {
    fs::create_directory(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  ~SinkTest() override { fs::remove_all(folder_); }
  SinkTest(const SinkTest&) = delete;
  SinkTest& operator=(const SinkTest&) = delete;

  std::string path() const { return folder_ / "audit.jsonl"; }
  std::string content() const { return read_file(path()); }
  static std::string read_file(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& bytes, mode_t mode) const {
    std::ofstream(path(), std::ios::binary) << bytes;
    ASSERT_EQ(::chmod(path().c_str(), mode), 0);
  }
  static std::chrono::system_clock::time_point noon() {
    return std::chrono::system_clock::time_point(std::chrono::hours(12));
  }
  Result<Sink> open() const { return Sink::open(path(), noon); }

  fs::path folder_;
};

TEST_F(SinkTest, WritesNumberedLinesAndMakesAPrivateFile) {
  auto sink = open();
  ASSERT_TRUE(sink) << sink.error().detail;
  ASSERT_TRUE(sink->append("s1", event(Kind::SessionStart)));
  ASSERT_TRUE(sink->append("s1", event(Kind::SessionEnd)));
  EXPECT_EQ(content(),
            R"({"time":"1970-01-01T12:00:00.000000Z","seq":1,"session":"s1","kind":"session_start",)"
            R"("reason":"none","detail":"","container":""})"
            "\n"
            R"({"time":"1970-01-01T12:00:00.000000Z","seq":2,"session":"s1","kind":"session_end",)"
            R"("reason":"none","detail":"","container":""})"
            "\n");
  struct stat about{};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0600U);
}

TEST_F(SinkTest, MakesMissingFoldersForTheOwnerAlone) {
  const fs::path deep = folder_ / "state" / "sallyport";
  auto sink = Sink::open(deep / "audit.jsonl", noon);
  ASSERT_TRUE(sink) << sink.error().detail;
  struct stat about{};
  ASSERT_EQ(::stat(deep.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0700U);
}

TEST_F(SinkTest, AppendsToWhatIsThereAndEndsATornLine) {
  put("{\"torn\":", 0600);
  auto sink = open();
  ASSERT_TRUE(sink) << sink.error().detail;
  ASSERT_TRUE(sink->append("s1", event(Kind::SessionStart)));
  EXPECT_THAT(content(), testing::StartsWith("{\"torn\":\n{\"time\""));
}

TEST_F(SinkTest, RefusesAFileThatIsOpenToOthersAndSaysWhatToDo) {
  put("", 0644);
  const auto sink = open();
  ASSERT_FALSE(sink);
  EXPECT_EQ(sink.error().reason, Reason::AuditUnavailable);
  EXPECT_THAT(sink.error().detail, HasSubstr("chmod 600"));
}

TEST_F(SinkTest, RefusesASymbolicLink) {
  fs::create_symlink(folder_ / "elsewhere", path());
  const auto sink = open();
  ASSERT_FALSE(sink);
  EXPECT_EQ(sink.error().reason, Reason::AuditUnavailable);
  EXPECT_THAT(sink.error().detail, HasSubstr("symbolic link"));
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
}

TEST_F(SinkTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const auto sink = open();
  ASSERT_FALSE(sink);
  EXPECT_THAT(sink.error().detail, HasSubstr("not a regular file"));
  EXPECT_FALSE(Sink::open(folder_.string() + "/", noon));
}

// The limit stands for a full disk: the kernel takes a part of the line, and then nothing.
TEST_F(SinkTest, TakesATornLineBackAndGoesOnWhenThereIsRoomAgain) {
  auto sink = open();
  ASSERT_TRUE(sink);
  ASSERT_TRUE(sink->append("s1", event(Kind::SessionStart)));
  const std::string before = content();

  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{before.size() + 20, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status refused = sink->append("s1", event(Kind::Begin));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  ::signal(SIGXFSZ, old_handler);

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::AuditUnavailable);
  EXPECT_EQ(content(), before);
  ASSERT_TRUE(sink->append("s1", event(Kind::SessionEnd)));
  EXPECT_THAT(content(), HasSubstr(R"("seq":2,"session":"s1","kind":"session_end")"));
}

TEST_F(SinkTest, ReportsAWriteThatTakesNothing) {
  Fd memory(::memfd_create("audit", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_TRUE(memory);
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  Sink sink(std::move(memory), noon);
  const Status refused = sink.append("s1", event(Kind::Begin));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::AuditUnavailable);
}

TEST_F(SinkTest, TwoWritersShareAFileWithoutMixingLines) {
  auto first = open();
  auto second = open();
  ASSERT_TRUE(first && second);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(first->append("one", event(Kind::SessionStart)));
    ASSERT_TRUE(second->append("two", event(Kind::SessionStart)));
  }
  std::ifstream in(path());
  int lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    EXPECT_TRUE(line.starts_with("{\"time\"") && line.ends_with("}")) << line;
  }
  EXPECT_EQ(lines, 100);
}

// Ids as sessions have them.
constexpr char kDead[] = "0123456789abcdef0123456789abcdef";
constexpr char kAlive[] = "f123456789abcdef0123456789abcdef";
constexpr char kNew[] = "fedcba98765432100123456789abcdef";

Event request_event(Kind kind, const std::string& request) {
  Event result = event(kind);
  result.request = request;
  return result;
}

TEST_F(SinkTest, EndsInTheNameOfADeadSessionWhatItLeftOpen) {
  {
    auto dead = open();
    ASSERT_TRUE(dead && dead->begin_session(kDead));
    ASSERT_TRUE(dead->append(kDead, event(Kind::SessionStart)));
    ASSERT_TRUE(dead->append(kDead, request_event(Kind::Begin, "ended")));
    ASSERT_TRUE(dead->append(kDead, request_event(Kind::Begin, "open")));
    ASSERT_TRUE(dead->append(kDead, request_event(Kind::End, "ended")));
  }
  const std::string before = content();
  auto sink = open();
  ASSERT_TRUE(sink);
  ASSERT_TRUE(sink->begin_session(kNew));
  EXPECT_EQ(
      content().substr(before.size()),
      R"({"time":"1970-01-01T12:00:00.000000Z","seq":5,"session":"0123456789abcdef0123456789abcdef",)"
      R"("kind":"end","request":"open","reason":"interrupted","detail":"written at the next start",)"
      R"("status":0,"bytes_in":0,"bytes_out":0,"duration_us":0,"container":""})"
      "\n"
      R"({"time":"1970-01-01T12:00:00.000000Z","seq":6,"session":"0123456789abcdef0123456789abcdef",)"
      R"("kind":"session_end","reason":"interrupted","detail":"written at the next start","container":""})"
      "\n");

  const std::string recovered = content();
  auto next = open();
  ASSERT_TRUE(next && next->begin_session(kAlive));
  EXPECT_EQ(content(), recovered) << "told twice";
}

TEST_F(SinkTest, LeavesLivingSessionsAlone) {
  auto alive = open();
  ASSERT_TRUE(alive && alive->begin_session(kAlive));
  ASSERT_TRUE(alive->append(kAlive, event(Kind::SessionStart)));
  ASSERT_TRUE(alive->append(kAlive, request_event(Kind::Begin, "open")));
  const std::string before = content();
  auto sink = open();
  ASSERT_TRUE(sink && sink->begin_session(kNew));
  EXPECT_EQ(content(), before);
}

TEST_F(SinkTest, EndsADeadSessionOnceWhenManyStartTogether) {
  {
    auto dead = open();
    ASSERT_TRUE(dead && dead->begin_session(kDead));
    ASSERT_TRUE(dead->append(kDead, event(Kind::SessionStart)));
  }
  {
    std::vector<std::jthread> starting;
    for (const char digit : std::string("123456789abcdef")) {
      starting.emplace_back([this, digit] {
        auto sink = open();
        EXPECT_TRUE(sink && sink->begin_session(digit + std::string(kNew).substr(1)));
      });
    }
  }
  const std::string log = content();
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
  EXPECT_THAT(log, HasSubstr(R"("kind":"session_end","reason":"interrupted")"));
}

TEST_F(SinkTest, StaysWithItsFileWhenALinkTakesItsPlace) {
  std::ofstream(folder_ / "elsewhere") << "not ours\n";
  auto sink = open();
  ASSERT_TRUE(sink);
  fs::rename(path(), folder_ / "moved");
  fs::create_symlink(folder_ / "elsewhere", path());
  ASSERT_TRUE(sink->begin_session(kNew));
  ASSERT_TRUE(sink->append(kNew, event(Kind::SessionStart)));
  EXPECT_EQ(read_file(folder_ / "elsewhere"), "not ours\n");
  EXPECT_THAT(read_file(folder_ / "moved"), HasSubstr("session_start"));
}

TEST_F(SinkTest, FindsADeadSessionWhenTheEndBeginsInTheMiddleOfALine) {
  // One line before that is cut, then the dead session's whole one.
  put(std::string(Sink::kMaxRecoveredBytes, 'x') + "\n", 0600);
  {
    auto dead = open();
    ASSERT_TRUE(dead && dead->append(kDead, event(Kind::SessionStart)));
  }
  auto sink = open();
  ASSERT_TRUE(sink && sink->begin_session(kNew));
  EXPECT_TRUE(
      content().ends_with(R"("reason":"interrupted","detail":"written at the next start","container":""})"
                          "\n"));
}

TEST_F(SinkTest, LooksForDeadSessionsInTheEndOfALongLogOnly) {
  {
    auto dead = open();
    ASSERT_TRUE(dead && dead->append(kDead, event(Kind::SessionStart)));
  }
  std::ofstream(path(), std::ios::binary | std::ios::app)
      << std::string(Sink::kMaxRecoveredBytes, 'x') << '\n';
  const std::string before = content();
  auto sink = open();
  ASSERT_TRUE(sink && sink->begin_session(kNew));
  EXPECT_EQ(content().size(), before.size());
}

TEST_F(SinkTest, DoesNotBeginASessionWhenItCannotEndAnother) {
  {
    auto dead = open();
    ASSERT_TRUE(dead && dead->append(kDead, event(Kind::SessionStart)));
  }
  const Fd file(::memfd_create("audit", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::string bytes = content();
  ASSERT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  Sink sink(Fd(::dup(file.get())), noon);
  const Status begun = sink.begin_session(kNew);
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().reason, Reason::AuditUnavailable);
}

}  // namespace
}  // namespace sallyport::audit
