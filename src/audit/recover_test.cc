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
      {"an end that was torn before its last byte",
       line("a", 1, Kind::SessionStart) + R"({"time":"x","seq":2,"session":"a","kind":"session_end")",
       1,
       {},
       1},
      {"begun twice under one name",
       line("a", 5, Kind::Begin, "r") + line("a", 6, Kind::Begin, "r"),
       1,
       {"r"},
       6},
      {"a line of a mebibyte between",
       line("a", 1, Kind::SessionStart) + std::string(1 << 20, '{') + "\n" + line("a", 2, Kind::SessionEnd),
       0,
       {},
       0},
      {"a number that is none",
       R"({"time":"x","seq":18446744073709551616,"session":"a","kind":"session_start","x":""})"
       "\n",
       0,
       {},
       0},
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

// The log's last 8 MiB begin anywhere in a line, and text in it may look like a line of ours.
TEST(UnfinishedSessions, AreNotForgedByALineThatIsCutAnywhere) {
  const std::string forged = R"({"time":"x","seq":1,"session":"b","kind":"session_start","x":"")"
                             "}";
  Event event;
  event.kind = Kind::Refused;
  event.request = forged;
  event.host = forged;
  event.path = "/" + forged;
  event.detail = forged + "\r\n" + forged + "\n" + forged;
  const std::string whole = json_line({{}, 1, "a"}, event);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_TRUE(unfinished_sessions(std::string_view(whole).substr(cut)).empty()) << whole.substr(cut);
    EXPECT_TRUE(unfinished_sessions(std::string_view(whole).substr(0, cut)).empty()) << cut;
  }
}

}  // namespace
}  // namespace sallyport::audit
