#include "control/log_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>

#include "control/api_client.h"
#include "control/api_server.h"
#include "os/control_socket.h"
#include "os/local_test.h"

namespace sallyport::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string line_of(const std::string& session, int number, const std::string& kind = "refused") {
  return R"({"time":"2026-01-31T10:20:30.1Z","seq":)" + std::to_string(number) + R"(,"session":")" + session +
         R"(","kind":")" + kind + "\"}";
}

class LogFile {
 public:
  LogFile() : file_(::open((room_ / "log").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

  void write(const std::string& text) {
    EXPECT_EQ(::write(file_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  Fd open() const { return Fd(::open((room_ / "log").c_str(), O_RDONLY | O_CLOEXEC)); }
  int fd() const { return file_.get(); }

 private:
  os::PrivateFolder room_;
  Fd file_;
};

std::vector<std::string> all_lines(LineReader& reader, std::size_t budget = SIZE_MAX) {
  std::vector<std::string> lines;
  for (;;) {
    const auto line = reader.next(budget);
    EXPECT_TRUE(line);
    if (!*line) return lines;
    lines.emplace_back((*line)->text);
  }
}

TEST(LineReader, TakesWholeLinesAndGoesOn) {
  LogFile file;
  LineReader reader(file.fd(), 0);
  EXPECT_THAT(all_lines(reader), IsEmpty());
  file.write("one\ntwo\nthr");
  EXPECT_THAT(all_lines(reader), ElementsAre("one", "two"));
  file.write("ee\n\n");
  EXPECT_THAT(all_lines(reader), ElementsAre("three", ""));
  LineReader later(file.fd(), 4);
  std::size_t budget = SIZE_MAX;
  EXPECT_EQ((*later.next(budget))->offset, 4U);
  EXPECT_EQ((*later.next(budget))->offset, 8U);
}

TEST(LineReader, LeavesOutWhatIsTooLong) {
  LogFile file;
  file.write("a\n" + std::string(kMaxLogLineBytes * 2, 'x') + "\nb\n");
  LineReader reader(file.fd(), 0);
  EXPECT_THAT(all_lines(reader), ElementsAre("a", "b"));
}

TEST(LineReader, StopsWhenItsBudgetIsUsedUp) {
  LogFile file;
  file.write("one\ntwo\n");
  LineReader reader(file.fd(), 0);
  EXPECT_THAT(all_lines(reader, 5), ElementsAre("one"));
  EXPECT_THAT(all_lines(reader), ElementsAre("two"));
}

// A server of its own, whose one call is a log.
class LogStreamTest : public ::testing::Test {
 protected:
  LogStreamTest()
      : socket_(os::ControlSocket::open(room_ / "run/control.sock", std::nullopt)),
        server_(loop_, {.owner = ::geteuid(), .operators = std::nullopt}, routes(), {}) {
    EXPECT_TRUE(socket_);
    server_.listen(socket_->fd());
  }

  std::vector<Route> routes() {
    std::vector<Route> all;
    all.push_back({.method = "GET", .pattern = "/log", .handler = [this](const Call&, Answer answer) {
                     LogStream::start(
                         loop_, file_.open(), wish_, [this] { return goes_on_.load(); }, std::move(answer));
                   }});
    return all;
  }

  // The numbers of the lines that come until the end; `during` is called for each.
  std::vector<std::string> lines(const std::function<void(std::size_t)>& during = nullptr) {
    std::thread server([this] { EXPECT_TRUE(loop_.run()); });
    std::vector<std::string> result;
    auto stream = ApiClient(room_ / "run/control.sock", ::geteuid()).stream({"GET", "/log"});
    EXPECT_TRUE(stream) << stream.error().detail;
    for (;;) {
      const auto step = stream->next();
      EXPECT_TRUE(step) << step.error().detail;
      if (!step || step->kind != ApiStream::Step::Kind::Line) break;
      const auto event = boost::json::parse(std::string_view(step->line.at("line").as_string()));
      result.push_back(std::to_string(event.at("seq").as_int64()));
      if (during) during(result.size());
    }
    stop_ = true;
    server.join();
    return result;
  }

  os::PrivateFolder room_;
  LogFile file_;
  LogStream::Wish wish_{.session = "aa"};
  std::atomic<bool> goes_on_{false};
  std::atomic<bool> stop_{false};
  os::EventLoop loop_;
  Result<os::ControlSocket> socket_;
  ApiServer server_;
  os::EventLoop::TimerId stopper_ = loop_.every(std::chrono::milliseconds(1), [this] {
    if (stop_) loop_.stop();
  });
};

TEST_F(LogStreamTest, GivesTheSessionsLastLinesAndNoOthers) {
  file_.write(line_of("aa", 1) + "\nnonsense\n" + line_of("bb", 2) + "\n" + line_of("aa", 3) + "\n" +
              line_of("aa", 4) + "\n" + line_of("aaa", 5) + "\n");
  wish_.lines = 2;
  EXPECT_THAT(lines(), ElementsAre("3", "4"));
}

TEST_F(LogStreamTest, GivesAllThatThereAre) {
  file_.write(line_of("aa", 1) + "\n" + line_of("aa", 2) + "\n");
  EXPECT_THAT(lines(), ElementsAre("1", "2"));
}

TEST_F(LogStreamTest, ALineOfAnotherDoesNotPassForOnesOwn) {
  // What a sandbox chose stands behind the fields that tell whose line it is.
  file_.write(R"({"time":"x","seq":7,"session":"bb","kind":"refused","path":",\"session\":\"aa\""})"
              "\n");
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(LogStreamTest, FollowsUntilTheSessionsLastLine) {
  file_.write(line_of("aa", 1) + "\n");
  wish_.lines = 0;
  wish_.follow = true;
  goes_on_ = true;
  file_.write(line_of("aa", 2) + "\n");
  wish_.lines = 1;
  EXPECT_THAT(lines([this](std::size_t count) {
                if (count == 1) file_.write(line_of("bb", 9) + "\n" + line_of("aa", 3) + "\n");
                if (count == 2) file_.write(line_of("aa", 4, "session_end") + "\n" + line_of("aa", 5) + "\n");
              }),
              ElementsAre("2", "3", "4"));
}

TEST_F(LogStreamTest, EndsWhenTheSessionDoesWithoutALastLine) {
  file_.write(line_of("aa", 1) + "\n");
  wish_.follow = true;
  goes_on_ = true;
  EXPECT_THAT(lines([this](std::size_t) { goes_on_ = false; }), ElementsAre("1"));
}

// More than may be queued for a reader: no line is lost, and it is not cut.
TEST_F(LogStreamTest, GoesAtTheReadersPace) {
  constexpr int kLines = 10'000;
  const std::string filler(300, 'x');
  std::string text;
  for (int i = 1; i <= kLines; ++i) {
    std::string line = line_of("aa", i);
    line.insert(line.size() - 1, R"(,"detail":")" + filler + "\"");
    text += line + "\n";
  }
  file_.write(text);
  ASSERT_GT(text.size(), kMaxQueuedBytes);
  EXPECT_EQ(lines().size(), static_cast<std::size_t>(kLines));
}

}  // namespace
}  // namespace sallyport::control
