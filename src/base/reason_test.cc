#include "base/reason.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace sallyport {
namespace {

TEST(Reason, EveryCodeIsUniqueAndComesBack) {
  std::set<std::string_view> seen;
  for (std::uint8_t number = 0; reason_from_number(number); ++number) {
    const Reason reason = *reason_from_number(number);
    EXPECT_TRUE(seen.insert(code(reason)).second) << code(reason);
    EXPECT_EQ(reason_from_code(code(reason)), reason);
  }
  EXPECT_GT(seen.size(), 40U);
  EXPECT_FALSE(reason_from_code("no_such_code"));
  EXPECT_FALSE(reason_from_number(255));
}

TEST(Reason, EveryRefusalHasAStatusAndASentenceOfOneLine) {
  for (std::uint8_t number = 1; reason_from_number(number); ++number) {
    const ReasonInfo& row = info(*reason_from_number(number));
    EXPECT_GE(row.status, 400) << row.code;
    EXPECT_EQ(row.sentence.back(), '.') << row.code;
    EXPECT_EQ(row.sentence.find('\n'), std::string_view::npos) << row.code;
  }
}

TEST(Reason, GatewaysTroubleNamesWhatToRun) {
  for (std::uint8_t number = 1; reason_from_number(number); ++number) {
    const ReasonInfo& row = info(*reason_from_number(number));
    if (row.origin != Origin::Gateway) continue;
    EXPECT_NE(row.advice.find('`'), std::string_view::npos) << row.code;
    EXPECT_EQ(row.advice.back(), '.') << row.code;
    EXPECT_EQ(row.advice.find('\n'), std::string_view::npos) << row.code;
  }
}

TEST(Reason, EndsAConnectionWhenItsRequestCouldNotBeRead) {
  EXPECT_FALSE(ends_connection(Reason::None));
  EXPECT_TRUE(ends_connection(Reason::BadRequest));
  EXPECT_TRUE(ends_connection(Reason::HostMismatch));
  EXPECT_TRUE(ends_connection(Reason::ClientTimeout));
  EXPECT_FALSE(ends_connection(Reason::RepoNotGranted));
  EXPECT_FALSE(ends_connection(Reason::Internal));
}

std::string_view fault(Origin origin) {
  switch (origin) {
    case Origin::Client:
      return "client";
    case Origin::Upstream:
      return "upstream";
    case Origin::Gateway:
      return "gateway";
  }
  return "";
}

TEST(Reason, StandsInTheDocumentationAsItIs) {
  std::ifstream file(SALLYPORT_SOURCE_DIR "/docs/errors.md");
  ASSERT_TRUE(file);
  std::vector<std::string> documented;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) documented.push_back(line);
  }
  std::vector<std::string> wanted;
  for (std::uint8_t number = 1; reason_from_number(number); ++number) {
    const ReasonInfo& row = info(*reason_from_number(number));
    std::string line = "| `" + std::string(row.code) + "` | " + std::to_string(row.status) + " | ";
    line +=
        std::string(fault(row.origin)) + " | " + std::string(row.sentence) + " | " + std::string(row.advice);
    wanted.push_back(line + (row.advice.empty() ? "|" : " |"));
  }
  EXPECT_EQ(documented, wanted);
}

}  // namespace
}  // namespace sallyport
