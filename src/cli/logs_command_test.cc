#include "cli/logs_command.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sallyport::cli {
namespace {

std::string shown(const char* event) {
  return event_text(boost::json::parse(event).as_object());
}

TEST(LogText, HasTheDecisionTheRequestAndTheReason) {
  EXPECT_EQ(
      shown(R"({"time":"2026-01-31T10:20:30.123456Z","kind":"refused","scheme":"https","host":"forge.test",
                      "port":443,"method":"GET","path":"/acme/other/info/refs","rule":"","credential":"",
                      "reason":"repo_not_granted","detail":"acme/other","refs":[],"refs_total":0})"),
      "2026-01-31T10:20:30Z refused       GET https://forge.test/acme/other/info/refs: repo_not_granted "
      "(acme/other)");
  EXPECT_EQ(
      shown(R"({"time":"2026-01-31T10:20:30.123456Z","kind":"begin","scheme":"https","host":"forge.test",
                      "port":8443,"method":"POST","path":"/acme/widget/git-receive-pack","rule":"sallyport.toml:3",
                      "credential":"forge","refs":[{"ref":"refs/heads/a","old":"0","new":"1"}],"refs_total":1})"),
      "2026-01-31T10:20:30Z allowed       POST https://forge.test:8443/acme/widget/git-receive-pack "
      "refs/heads/a, by sallyport.toml:3, credential forge");
  EXPECT_EQ(shown(R"({"time":"2026-01-31T10:20:30.1Z","kind":"end","request":"ab","reason":"none","detail":"",
                      "status":200,"bytes_in":1,"bytes_out":2,"duration_us":3999})"),
            "2026-01-31T10:20:30Z done          request ab, status 200, 1 bytes in, 2 out, 3 ms");
  EXPECT_EQ(
      shown(R"({"time":"2026-01-31T10:20:30.1Z","kind":"refused","scheme":"dns","host":"a.test","port":53,
                      "method":"","path":"AAAA","reason":"host_not_allowed","detail":""})"),
      "2026-01-31T10:20:30Z refused       dns://a.test AAAA: host_not_allowed");
  EXPECT_EQ(
      shown(R"({"time":"2026-01-31T10:20:30.1Z","kind":"refused","scheme":"","host":"","port":0,"method":"",
                      "destination":"192.0.2.1:25","path":"","reason":"port_not_allowed","detail":""})"),
      "2026-01-31T10:20:30Z refused       192.0.2.1:25: port_not_allowed");
  EXPECT_EQ(shown(R"({"time":"2026-01-31T10:20:30.1Z","kind":"coalesced","of":"refused","entry":"dns",
                      "reason":"host_not_allowed","count":7})"),
            "2026-01-31T10:20:30Z coalesced     7 more of refused: host_not_allowed");
  EXPECT_EQ(
      shown(R"({"time":"2026-01-31T10:20:30.1Z","kind":"session_end","reason":"none","detail":"stopped"})"),
      "2026-01-31T10:20:30Z session_end   (stopped)");
}

TEST(LogText, HasNoControlCharacters) {
  EXPECT_EQ(
      shown(R"({"time":"\u001b[2J","kind":"refused","method":"G\n","host":"a\u0000","path":"/\u009b\u00e9\\",
                      "reason":"x\r","detail":"\u007f"})"),
      "\\x1b[2JZ refused       G\\x0a a\\x00/\\xc2\\x9b\\xc3\\xa9\\x5c: x\\x0d (\\x7f)");
}

}  // namespace
}  // namespace sallyport::cli
