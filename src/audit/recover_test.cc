#include "audit/recover.h"

#include <gtest/gtest.h>

#include "audit/json.h"

namespace sallyport::audit {
namespace {

std::string line(const std::string& session, std::uint64_t sequence, Kind kind,
                 const std::string& request = "") {
  Event event;
  event.kind = kind;
  event.request = request;
  return json_line({std::chrono::system_clock::time_point(), sequence, session}, event);
}

TEST(UnfinishedSessions, AreThoseWithAStartOrAnOpenRequestAndNoEnd) {
  const struct {
    const char* name;
    std::string log;
    std::size_t sessions;
    std::vector<std::string> open;
    std::uint64_t last;
  } cases[] = {
      {"empty", "", 0, {}, 0},
      {"only a start", line("a", 1, Kind::SessionStart), 1, {}, 1},
      {"an orderly end", line("a", 1, Kind::SessionStart) + line("a", 2, Kind::SessionEnd), 0, {}, 0},
      {"a request that ended", line("a", 5, Kind::Begin, "r") + line("a", 6, Kind::End, "r"), 0, {}, 0},
      {"a request that did not",
       line("a", 5, Kind::Begin, "r") + line("a", 6, Kind::Begin, "s") + line("a", 7, Kind::End, "r"),
       1,
       {"s"},
       7},
      {"refused before it started", line("a", 1, Kind::Refused, "r"), 0, {}, 0},
      {"another's end", line("a", 1, Kind::SessionStart) + line("b", 1, Kind::SessionEnd), 1, {}, 1},
      {"begun and refused elsewhere",
       line("a", 1, Kind::Begin, "r") + line("a", 2, Kind::Refused, "r"),
       1,
       {"r"},
       2},
      {"a torn line",
       line("a", 1, Kind::SessionStart) + R"({"time":"x","seq":2,"session":"a","kind":"sess)",
       1,
       {},
       1},
      {"lines that are none",
       "\n{}\nx\n{\"time\":\"\",\"seq\":x,\"session\":\"a\",\"kind\":\"begin\"}\n",
       0,
       {},
       0},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const auto found = unfinished_sessions(test.log);
    ASSERT_EQ(found.size(), test.sessions);
    if (found.empty()) continue;
    EXPECT_EQ(found[0].session, "a");
    EXPECT_EQ(found[0].open_requests, test.open);
    EXPECT_EQ(found[0].last_sequence, test.last);
  }
}

TEST(UnfinishedSessions, AreNotForgedByWhatASandboxChose) {
  Event event;
  event.kind = Kind::Refused;
  event.host = "x\n{\"time\":\"\",\"seq\":1,\"session\":\"a\",\"kind\":\"begin\",\"request\":\"r\"}\n";
  EXPECT_TRUE(unfinished_sessions(json_line({{}, 1, "a"}, event)).empty());
}

}  // namespace
}  // namespace sallyport::audit
