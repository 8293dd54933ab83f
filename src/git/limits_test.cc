// docs/git-protocol.md is what operators read: its tables say what the code does.

#include "forward/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/reason.h"
#include "git/limits.h"
#include "git/pktline.h"
#include "git/push.h"
#include "http/limits.h"
#include "policy/grant.h"
#include "upstream/exchange.h"

namespace sallyport::git {
namespace {

using ::testing::HasSubstr;

std::string document() {
  const auto path = std::filesystem::path(SALLYPORT_SOURCE_DIR) / "docs/git-protocol.md";
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_FALSE(text.empty()) << path;
  return text;
}

std::string row(std::string_view name, std::uint64_t value, std::string_view unit = {}) {
  return "\n| " + std::string(name) + " | " + std::to_string(value) + std::string(unit) + " |";
}

TEST(GitProtocolDocument, HasEveryLimit) {
  const std::string text = document();
  EXPECT_THAT(text, HasSubstr(row("request head", http::kMaxHeadBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("header fields", http::kMaxFields)));
  EXPECT_THAT(text, HasSubstr(row("one line of the head", http::kMaxLineBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("request target", http::kMaxTargetBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("`Git-Protocol`", kMaxGitProtocolBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("one pkt-line", kMaxPktBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("list of commands", kMaxPushHeadBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("commands of a push", kMaxPushCommands)));
  EXPECT_THAT(text, HasSubstr(row("shallow lines of a push", kMaxShallowLines)));
  EXPECT_THAT(text, HasSubstr(row("ref name", kMaxRefBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("one capability", kMaxCapabilityBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("refused body that is read", kMaxDrainBytes, " bytes")));
  EXPECT_THAT(text, HasSubstr(row("buffer of a transfer, each way", forward::kMoveBytes, " bytes")));
}

TEST(GitProtocolDocument, HasEveryTimeout) {
  const std::string text = document();
  const auto seconds = [](std::string_view name, std::chrono::seconds value) {
    return row(name, static_cast<std::uint64_t>(value.count()));
  };
  const auto whole = [](std::chrono::milliseconds value) {
    return std::chrono::duration_cast<std::chrono::seconds>(value);
  };
  const policy::Timeouts limits;
  EXPECT_THAT(text, HasSubstr(seconds("request head", whole(limits.request_head))));
  EXPECT_THAT(text, HasSubstr(seconds("between two requests", http::kKeepAliveIdle)));
  EXPECT_THAT(text, HasSubstr(seconds("body of a git request, without a byte moving", whole(limits.idle))));
  EXPECT_THAT(text, HasSubstr(seconds("answer to git, without a byte moving",
                                      whole(limits.idle) + forward::kAnswerGrace)));
  EXPECT_THAT(text, HasSubstr(seconds("closing: the rest of what the client sends", http::kLingerTimeout)));
  EXPECT_THAT(text, HasSubstr(seconds("the upstream's TCP connection", whole(limits.connect))));
  EXPECT_THAT(text, HasSubstr(seconds("the upstream's TLS handshake", whole(limits.tls))));
  EXPECT_THAT(text, HasSubstr(seconds(
                        "the upstream's answer, from the request's last byte to the end of the answer's head",
                        whole(limits.first_byte))));
  EXPECT_THAT(text, HasSubstr(seconds("the upstream, without a byte moving", whole(limits.idle))));
}

TEST(GitProtocolDocument, HasTheStatusOfEveryReasonThatItNames) {
  const std::string text = document();
  int named = 0;
  for (unsigned number = 0; number < 256; ++number) {
    const auto reason = reason_from_number(static_cast<std::uint8_t>(number));
    if (!reason) continue;
    const std::string start = "\n| `" + std::string(code(*reason)) + "` | ";
    if (text.find(start) == std::string::npos) continue;
    ++named;
    EXPECT_THAT(text, HasSubstr(start + std::to_string(info(*reason).status) + " |"));
  }
  EXPECT_GE(named, 30);
}

TEST(GitProtocolDocument, HasTheForwardedHeaders) {
  std::string names;
  for (const std::string_view name : upstream::kForwardedHeaders) {
    names += (names.empty() ? "`" : ", `") + std::string(name) + "`";
  }
  EXPECT_THAT(document(), HasSubstr("| passed on, once each | " + names + " |"));
}

}  // namespace
}  // namespace sallyport::git
