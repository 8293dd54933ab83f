// The catalogue of what a front must refuse (tests/data/front), against everything between the client's bytes
// and the bytes that an upstream would get.
#include "gate/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "egress/client_hello.h"
#include "gate/fake_front.h"
#include "gate/spellings.h"
#include "upstream/exchange.h"

namespace sallyport::gate::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFollowUp = unescaped(kGoodGet) + "Connection: close\r\n\r\n";
const std::string kForwarded =
    "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: forge.test\r\n\r\n";
// Refused, and the connection stays.
const std::string kPolite = "GET /login HTTP/1.1\r\nHost: forge.test\r\n\r\n";

bool is_refused(const Case& test) {
  return test.reason != "-";
}
bool ends_its_connection(const Case& test) {
  return is_refused(test) && ends_connection(reason_from_code(test.reason).value());
}

// Also after a refusal whose request was clear, if its body was not read.
bool keeps_its_connection(const Case& test) {
  return !ends_its_connection(test) && (!is_refused(test) || test.payload.ends_with("\r\n\r\n"));
}

// The case with a good request behind it, pipelined: what a smuggler hopes to be served.
Verdict serve(const std::vector<std::string>& pieces) {
  static const policy::Grant kGrant = forge_grant();
  return serve_bytes(pieces, kGrant);
}

// What became of the case; "" when it is what the table says.
std::string fault_of(const Case& test, const Verdict& verdict) {
  std::vector<std::string> lines;
  if (is_refused(test)) lines = {"refused " + test.reason};
  const bool follow_up_served = keeps_its_connection(test);
  for (int carried = (is_refused(test) ? 0 : 1) + (follow_up_served ? 1 : 0); carried > 0; --carried) {
    lines.insert(lines.end(), {"begin", "end upstream_not_found"});
  }
  std::string fault;
  if (verdict.lines != lines) fault += "audit lines: " + ::testing::PrintToString(verdict.lines) + "\n";
  if (verdict.sent.size() != (is_refused(test) ? 0U : 1U) + (follow_up_served ? 1U : 0U))
    fault += "sent upstream\n";
  if (follow_up_served && !verdict.sent.empty() && verdict.sent.back().bytes != kForwarded) {
    fault += "the follow-up came to: " + verdict.sent.back().bytes + "\n";
  }
  if (verdict.answers() != (follow_up_served ? 2U : 1U)) fault += "answers: " + verdict.answer + "\n";
  if (!is_refused(test)) return fault;
  const ReasonInfo& row = info(reason_from_code(test.reason).value());
  if (!verdict.answer.starts_with("HTTP/1.1 " + std::to_string(row.status) + " ")) fault += "status\n";
  const bool is_told = !test.payload.starts_with("HEAD ");
  if (is_told && verdict.answer.find(row.sentence) == std::string::npos)
    fault += "sentence: " + verdict.answer + "\n";
  if (!follow_up_served && verdict.answer.find("\r\nConnection: close\r\n") == std::string::npos) {
    fault += "not closed\n";
  }
  return fault;
}

std::vector<std::string> single_bytes(std::string_view bytes) {
  std::vector<std::string> pieces;
  for (const char byte : bytes) pieces.emplace_back(1, byte);
  return pieces;
}

TEST(Catalogue, CoversItsFamilies) {
  std::set<std::string> families;
  std::set<std::string> names;
  for (const Case& test : read_cases()) {
    families.insert(test.name.substr(0, test.name.find(' ')));
    EXPECT_TRUE(names.insert(test.name).second) << test.name << " stands there twice";
    EXPECT_TRUE(!is_refused(test) || reason_from_code(test.reason)) << test.name;
  }
  EXPECT_THAT(families,
              ::testing::IsSupersetOf({"G1",  "G2",  "G3",  "G5",  "G6",  "G7",  "G8",  "G10", "G11", "G12",
                                       "G13", "G14", "G15", "G17", "G18", "H1",  "H2",  "H10", "H12", "H13",
                                       "H14", "H15", "H21", "A27", "A28", "A29", "A30", "A35"}));
  EXPECT_GT(names.size(), 300U);
}

TEST(Catalogue, EveryCaseComesToItsVerdict) {
  for (const Case& test : read_cases())
    EXPECT_EQ(fault_of(test, serve({test.payload + kFollowUp})), "") << test.name;
}

TEST(Catalogue, TheVerdictDoesNotDependOnHowTheBytesAreCut) {
  constexpr std::size_t kMaxCuts = 300;  // of the long ones: the last of them, where the verdict falls
  for (const Case& test : read_cases()) {
    const std::string bytes = test.payload + kFollowUp;
    const std::size_t first = bytes.size() > kMaxCuts ? bytes.size() - kMaxCuts : 1;
    for (std::size_t cut = first; cut < bytes.size(); ++cut) {
      const Verdict verdict = serve({bytes.substr(0, cut), bytes.substr(cut)});
      ASSERT_EQ(fault_of(test, verdict), "") << test.name << ", cut at " << cut;
    }
    EXPECT_EQ(fault_of(test, serve(single_bytes(bytes))), "") << test.name << ", byte by byte";
  }
}

TEST(Catalogue, TheVerdictIsTheSameOnAKeptAliveConnection) {
  for (const Case& test : read_cases()) {
    for (const bool at_once : {true, false}) {
      const std::string rest = test.payload + kFollowUp;
      Verdict verdict = serve(at_once ? std::vector{kPolite + rest} : std::vector{kPolite, rest});
      ASSERT_FALSE(verdict.lines.empty());
      EXPECT_EQ(verdict.lines.front(), "refused not_git");
      verdict.lines.erase(verdict.lines.begin());
      verdict.answer.erase(0, verdict.answer.find("HTTP/1.1", 1));
      EXPECT_EQ(fault_of(test, verdict), "") << test.name;
    }
  }
}

// ---- neighbours: the same fault in another spelling ----

TEST(Catalogue, TheVerdictIsTheSameInOtherSpellings) {
  for (const Case& test : read_cases()) {
    if (test.name.starts_with("H21 ")) continue;  // one blank less, and it is within its limit
    for (const auto& [how, payload] : other_spellings(test.payload)) {
      EXPECT_EQ(fault_of(test, serve({payload + kFollowUp})), "") << test.name << ", " << how;
    }
  }
}

// ---- what is carried out ----

TEST(Catalogue, WhatIsCarriedOutHoldsNothingButTheForwardedFields) {
  std::set<std::string_view> allowed(std::begin(upstream::kForwardedHeaders),
                                     std::end(upstream::kForwardedHeaders));
  allowed.insert({"Host", "Content-Length", "Transfer-Encoding"});
  for (const Case& test : read_cases()) {
    if (is_refused(test)) continue;
    const Verdict verdict = serve({test.payload + kFollowUp});
    ASSERT_EQ(verdict.sent.size(), 2U) << test.name;
    EXPECT_TRUE(verdict.sent[0].complete) << test.name;
    const std::string head = verdict.sent[0].bytes.substr(0, verdict.sent[0].bytes.find("\r\n\r\n"));
    EXPECT_THAT(head, HasSubstr("\r\nHost: forge.test")) << test.name;
    for (const std::string_view line : split(head, '\n')) {
      if (line.find(" HTTP/1.1") != std::string_view::npos) continue;
      EXPECT_TRUE(allowed.contains(line.substr(0, line.find(':')))) << test.name << ": " << line;
    }
    if (test.name.starts_with("good rpc")) {
      EXPECT_THAT(verdict.sent[0].bytes,
                  ::testing::EndsWith(test.name == "good rpc" ? "\r\n\r\n00000000" : "\r\n0\r\n\r\n"));
    } else {
      EXPECT_EQ(verdict.sent[0].bytes, kForwarded) << test.name;
    }
  }
}

TEST(Catalogue, ABodyThatBreaksOffIsNeverCompleteUpstream) {
  // A fetch's body streams: when its chunks turn out malformed, the upstream has got a part of it. It must
  // not look whole, and nothing may follow it.
  for (const std::string_view chunks :
       {"4\\r\\n0000\\r\\n4;x\\r\\n0000\\r\\n0\\r\\n\\r\\n", "4\\r\\n0000\\r\\n0\\r\\nX: y\\r\\n\\r\\n",
        "4\\r\\n00000\\r\\n\\r\\n", "0x4\\r\\n0000"}) {
    const std::string bytes = unescaped(kGoodPost) + "Transfer-Encoding: chunked\r\n\r\n" + unescaped(chunks);
    const Verdict verdict = serve({bytes + kFollowUp});
    EXPECT_THAT(verdict.lines, ElementsAre("begin", "end bad_request")) << chunks;
    ASSERT_EQ(verdict.sent.size(), 1U);
    EXPECT_FALSE(verdict.sent[0].complete) << verdict.sent[0].bytes;
    EXPECT_EQ(verdict.sent[0].bytes.find("\r\n0\r\n\r\n"), std::string::npos) << verdict.sent[0].bytes;
    EXPECT_TRUE(verdict.answer.starts_with("HTTP/1.1 400 ")) << verdict.answer;
    EXPECT_EQ(verdict.answers(), 1U) << verdict.answer;
  }
}

// ---- hosts ----

TEST(Catalogue, AHostHasOneReadingInTlsAndInHttp) {
  const policy::HostName forge = *policy::HostName::parse("forge.test");
  for (const auto& row : read_table("hosts.tsv")) {
    const std::string spelling = unescaped(row.at(0));
    const std::string& reason = row.at(1);
    SCOPED_TRACE(row.at(0));

    const auto size = static_cast<char>(spelling.size());
    const std::string entry = std::string("\0\0", 2) + size + spelling;
    const auto sni =
        egress::parse_server_name(std::string(1, '\0') + static_cast<char>(entry.size()) + entry);
    const std::string head =
        "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: " + spelling +
        "\r\nConnection: close\r\n\r\n";
    const Verdict verdict = serve({head});
    if (reason == "-") {
      EXPECT_TRUE(sni && *sni == forge);
      ASSERT_EQ(verdict.sent.size(), 1U);
      EXPECT_EQ(verdict.sent[0].bytes, kForwarded);
    } else if (reason == "host_not_allowed") {  // a name, but not ours
      EXPECT_TRUE(sni && *sni != forge);
      EXPECT_THAT(verdict.lines, ElementsAre("refused host_mismatch"));
    } else {
      ASSERT_FALSE(sni);
      EXPECT_EQ(code(sni.error().reason), reason);
      EXPECT_THAT(verdict.lines, ElementsAre("refused " + reason));
      EXPECT_TRUE(verdict.sent.empty());
    }
  }
}

}  // namespace
}  // namespace sallyport::gate::testing
