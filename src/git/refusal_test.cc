#include "git/refusal.h"

#include <gtest/gtest.h>

#include "git/pktline.h"

namespace sallyport::git {
namespace {

PushCommands push_of(std::vector<std::string> capabilities) {
  const std::string zero(40, '0');
  const std::string one(40, '1');
  return {.shallow = {},
          .commands = {{zero, one, "refs/heads/a"}, {zero, one, "refs/heads/b"}},
          .capabilities = std::move(capabilities)};
}

TEST(Refusal, OfAFetchIsAnErrPkt) {
  EXPECT_EQ(fetch_refusal("no\nrequest 1\n"), "0015ERR no\nrequest 1\n");
  EXPECT_LE(fetch_refusal(std::string(100'000, 'x')).size(), kMaxPktBytes);
}

TEST(Refusal, OfAPushReportsEveryRefInTheSideBandAskedFor) {
  const std::string report = "000eunpack ok\n0017ng refs/heads/a no\n0017ng refs/heads/b no\n0000";
  EXPECT_EQ(push_refusal(push_of({"report-status"}), "text\n", "no"), report);
  EXPECT_EQ(push_refusal(push_of({"report-status-v2", "side-band-64k"}), "text\n", "no"),
            "000a\x02text\n0045\x01" + report + "0000");
}

TEST(Refusal, OfAPushCannotBeReportedToWhoDidNotAsk) {
  EXPECT_EQ(push_refusal(push_of({"side-band-64k"}), "text\n", "no"), std::nullopt);
}

TEST(Refusal, OfManyRefsIsCutIntoBandPackets) {
  PushCommands push = push_of({"report-status", "side-band-64k"});
  for (int i = 0; i < 3000; ++i) {
    push.commands.push_back(
        {push.commands[0].old_id, push.commands[0].new_id, "refs/heads/x" + std::to_string(i)});
  }
  const std::string body = push_refusal(push, "text\n", "no").value();
  std::string report;
  std::string_view rest = body;
  int packets = 0;
  while (true) {
    const auto pkt = next_pkt(rest, Reason::Internal).value().value();
    rest.remove_prefix(pkt.bytes);
    if (pkt.kind == PktKind::Flush) break;
    ++packets;
    if (pkt.data[0] == '\x01') report += pkt.data.substr(1);
  }
  EXPECT_TRUE(rest.empty());
  EXPECT_GE(packets, 3);
  EXPECT_EQ(
      report,
      push_refusal({.shallow = {}, .commands = push.commands, .capabilities = {"report-status"}}, "", "no"));
}

TEST(Refusal, OfLfsIsTheJsonThatItsClientShows) {
  EXPECT_EQ(lfs_refusal("Not here.", "0f"), R"({"message":"sallyport: Not here.","request_id":"0f"})");
}

}  // namespace
}  // namespace sallyport::git
