#include "engine/events.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/fake_engine.h"

namespace sallyport::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string line(std::string_view action, std::string_view container, std::int64_t time_ns) {
  return fmt::format(
      R"({{"Type":"container","Action":"{}","Actor":{{"ID":"{}","Attributes":{{"name":"n"}}}},"timeNano":{}}})"
      "\n",
      action, container, time_ns);
}

TEST(ReadEvent, KnowsWhatHappensToContainers) {
  const std::pair<const char*, EventKind> cases[] = {
      {"create", EventKind::Create},   {"start", EventKind::Start},    {"pause", EventKind::Pause},
      {"unpause", EventKind::Unpause}, {"die", EventKind::Die},        {"died", EventKind::Die},
      {"destroy", EventKind::Destroy}, {"remove", EventKind::Destroy}, {"oom", EventKind::OutOfMemory},
  };
  for (const auto& [action, kind] : cases) {
    const auto event = read_event(line(action, "c", 5));
    ASSERT_TRUE(event && *event) << action;
    EXPECT_EQ((*event)->kind, kind);
    EXPECT_EQ((*event)->container, "c");
    EXPECT_EQ((*event)->name, "n");
    EXPECT_EQ((*event)->time_ns, 5);
  }
}

TEST(ReadEvent, KnowsWhatHappensToNetworks) {
  const auto event = read_event(
      R"({"Type":"network","Action":"connect","Actor":{"ID":"n","Attributes":{"container":"c","name":"bridge"}},"timeNano":1})");
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->kind, EventKind::Connect);
  EXPECT_EQ((*event)->container, "c");
  EXPECT_EQ((*event)->network, "bridge");
  EXPECT_EQ((*event)->network_id, "n");
}

TEST(ReadEvent, LeavesOutWhatItDoesNotKnow) {
  for (const char* text :
       {R"({"Type":"container","Action":"exec_create: sh"})", R"({"Type":"network","Action":"create"})",
        R"({"Type":"network","Action":"die"})"}) {
    const auto event = read_event(text);
    ASSERT_TRUE(event) << text;
    EXPECT_FALSE(*event);
  }
}

TEST(ReadEvent, RefusesWhatMakesNoSense) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"Type":"container"})", R"({"Type":"container","Action":"die"})",
        R"({"Type":"container","Action":"die","Actor":{},"timeNano":1})",
        R"({"Type":"container","Action":"die","Actor":{"ID":"c"}})"}) {
    EXPECT_FALSE(read_event(text)) << text;
  }
}

constexpr char kHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(std::string_view bytes) {
  return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

class EventStream : public WithFakeEngine {
 protected:
  void listen() {
    Events::Callbacks callbacks;
    callbacks.on_resync = [this] { note("resync"); };
    callbacks.on_event = [this](const Event& event) {
      note(fmt::format("{}@{}", event.container, event.time_ns));
    };
    callbacks.on_lost = [this](const Error& error) {
      why_ = error.detail;
      note("lost");
    };
    events_ = std::make_unique<Events>(*client_, std::move(callbacks));
  }
  void note(std::string what) {
    seen_.push_back(std::move(what));
    if (seen_.size() >= until_) stop();
  }
  // Until so many things have been told.
  void run_until(std::size_t count) {
    until_ = count;
    run();
  }

  std::unique_ptr<Events> events_;
  std::vector<std::string> seen_;
  std::string why_;
  std::size_t until_ = 0;
};

TEST_F(EventStream, TellsThemHoweverTheBytesCome) {
  start([&](Connection& connection) {
    const std::string lines = line("start", "a", 1) + "\r\n" + line("die", "a", 2);
    std::vector<std::function<void()>> steps;
    std::shared_ptr<FakeEngine::Connection> kept = std::move(connection);
    kept->send(kHead);
    for (const char c : lines) steps.push_back([kept, c] { kept->send(chunk({&c, 1})); });
    in_turns(std::move(steps));
  });
  listen();
  run_until(4);
  EXPECT_THAT(seen_, ElementsAre("resync", "a@1", "a@2", "lost"));
}

TEST_F(EventStream, ComesBackWithoutTellingAnythingTwice) {
  std::vector<std::string> targets;
  start([&](Connection& connection) {
    targets.push_back(connection->request.substr(0, connection->request.find(" HTTP")));
    connection->send(kHead);
    if (targets.size() == 1)
      connection->send(chunk(line("start", "a", 5'000'000'001) + line("start", "b", 5'000'000'002)));
    if (targets.size() == 2)
      connection->send(chunk(line("start", "b", 5'000'000'002) + line("die", "b", 5'000'000'003)));
  });
  listen();
  run_until(7);
  EXPECT_THAT(
      seen_, ElementsAre("resync", "a@5000000001", "b@5000000002", "lost", "resync", "b@5000000003", "lost"));
  EXPECT_THAT(targets[0], Not(HasSubstr("since")));
  EXPECT_THAT(targets[1], HasSubstr("&since=4"));
  EXPECT_THAT(why_, HasSubstr("closed the connection"));
}

TEST_F(EventStream, WaitsForAnEngineThatIsNotThere) {
  listen();
  run_until(2);
  EXPECT_THAT(seen_, ElementsAre("lost", "lost"));
  EXPECT_THAT(why_, HasSubstr("there is no container engine at"));
  start([](Connection& connection) { connection->send(kHead); });
  run_until(3);
  EXPECT_EQ(seen_.back(), "resync");
}

TEST_F(EventStream, TellsWhyItIsRefused) {
  start([](Connection& connection) { connection->send_json(R"({"message":"no events here"})", 500); });
  listen();
  run_until(1);
  EXPECT_EQ(why_, "the container engine answered /events with 500: no events here");
}

TEST_F(EventStream, AsksForEverythingWhenALineIsTooLongOrNone) {
  start([this](Connection& connection) {
    std::shared_ptr<FakeEngine::Connection> kept = std::move(connection);
    kept->send(kHead);
    // No more at once than the loop reads at once.
    constexpr std::size_t kPiece = 16 * 1024;
    std::vector<std::function<void()>> steps(kMaxEventBytes / kPiece,
                                             [kept] { kept->send(chunk(std::string(kPiece, ' '))); });
    steps.push_back(
        [kept] { kept->send(chunk(" \n" + line("start", "a", 1) + "what?\n" + line("start", "b", 2))); });
    in_turns(std::move(steps));
  });
  listen();
  run_until(6);
  EXPECT_THAT(seen_, ElementsAre("resync", "resync", "a@1", "resync", "b@2", "lost"));
}

TEST_F(EventStream, ForgetsWhatWasSeenLongAgo) {
  start([](Connection& connection) {
    connection->send(kHead);
    std::string lines;
    for (std::size_t i = 1; i <= kMaxRememberedEvents + 1; ++i)
      lines += line("start", "a", static_cast<std::int64_t>(i));
    connection->send(chunk(lines + line("start", "a", 1) + line("start", "a", 3)));
  });
  listen();
  run_until(kMaxRememberedEvents + 4);
  EXPECT_EQ(seen_[kMaxRememberedEvents + 2], "a@1");
  EXPECT_EQ(seen_.back(), "lost");
}

TEST_F(EventStream, MayBeEndedByItsOwnCallbacks) {
  for (const char* end_at : {"resync", "event", "lost"}) {
    start([](Connection& connection) {
      connection->send(kHead);
      connection->send(chunk(line("start", "a", 1) + line("die", "a", 2)));
    });
    std::vector<std::string> seen;
    const auto note = [&](const char* what) {
      seen.push_back(what);
      if (std::string_view(what) != end_at) return;
      events_.reset();
      loop_.after(std::chrono::milliseconds(0), [&] { stop(); });
    };
    events_ = std::make_unique<Events>(
        *client_, Events::Callbacks{[=] { note("resync"); }, [=](const Event&) { note("event"); },
                                    [=](const Error&) { note("lost"); }});
    run();
    EXPECT_EQ(seen.back(), end_at);
    EXPECT_EQ(std::ranges::count(seen, end_at), 1);
  }
}

}  // namespace
}  // namespace sallyport::engine
