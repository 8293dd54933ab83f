// docs/policy.md says what the code does: its examples are parsed, its tables are asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/approvals.h"
#include "config/shared_hosts.h"
#include "config/testing.h"

namespace sallyport::config {
namespace {

struct Block {
  std::string language;
  std::string text;
};

std::string page() {
  return read_for_test(source_path("docs/policy.md"));
}

std::vector<Block> code_blocks(const std::string& markdown) {
  std::vector<Block> blocks;
  std::optional<Block> open;
  for (const std::string_view line : split(markdown, '\n')) {
    if (line.starts_with("```")) {
      if (open) {
        blocks.push_back(*std::exchange(open, std::nullopt));
      } else {
        open = Block{std::string(line.substr(3)), ""};
      }
    } else if (open) {
      open->text += std::string(line) + "\n";
    }
  }
  return blocks;
}

// The rows of the table whose header begins with `header`; cells without their backquotes.
std::vector<std::vector<std::string>> table(const std::string& markdown, std::string_view header) {
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (const std::string_view line : split(markdown, '\n')) {
    if (line.starts_with(header)) {
      inside = true;
    } else if (inside && line.starts_with("|---")) {
      continue;
    } else if (inside && line.starts_with("|")) {
      std::vector<std::string> cells;
      for (std::string_view cell : split(line.substr(1, line.size() - 2), '|')) {
        cell = trimmed(cell);
        if (cell.size() > 2 && cell.starts_with('`') && cell.ends_with('`')) {
          cell = cell.substr(1, cell.size() - 2);
        }
        cells.emplace_back(cell);
      }
      rows.push_back(cells);
    } else {
      inside = false;
    }
  }
  return rows;
}

std::string problems_of(const std::string& file, const std::string& text, const OperatorConfig& config) {
  if (file == "config.toml") {
    const auto parsed = parse_operator_config(text, file, "/home/me");
    return parsed ? "" : joined(parsed.error());
  }
  const auto policy = parse_policy(text, file, config);
  if (!policy) return joined(policy.error());
  const auto grant = make_grant(*policy, {}, config);
  return grant ? "" : joined(grant.error());
}

TEST(PolicyPage, HasExamplesThatAreJudgedAsItSays) {
  const std::vector<Block> blocks = code_blocks(page());
  OperatorConfig config;
  for (const Block& block : blocks) {
    if (!block.text.starts_with("# config.toml\n")) continue;
    const auto parsed = parse_operator_config(block.text, "config.toml", "/home/me");
    ASSERT_TRUE(parsed) << joined(parsed.error());
    config = *parsed;
  }
  ASSERT_FALSE(config.credentials.empty());

  int accepted = 0;
  int refused = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].language != "toml") continue;
    const std::string first_line = blocks[i].text.substr(2, blocks[i].text.find('\n') - 2);
    const std::string file = first_line.substr(0, first_line.find(','));
    if (first_line == file) {
      EXPECT_EQ(problems_of(file, blocks[i].text, config), "");
      ++accepted;
    } else {
      ASSERT_EQ(first_line, file + ", refused");
      ASSERT_LT(i + 1, blocks.size());
      EXPECT_EQ(problems_of(file, blocks[i].text, config), blocks[i + 1].text);
      ++refused;
    }
  }
  EXPECT_GE(accepted, 2);
  EXPECT_GE(refused, 4);
}

TEST(PolicyPage, HasATableOfMatchesThatHolds) {
  const auto rows = table(page(), "| rule | asked |");
  EXPECT_GE(rows.size(), 15U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 4U);
    const auto kind = policy::host_kind_from_name(row[2]);
    ASSERT_TRUE(kind) << row[2];
    const auto pattern = policy::RepoPattern::parse(row[0], *kind);
    ASSERT_TRUE(pattern) << row[0];
    const auto repo = policy::parse_repo(row[1], *kind);
    const char* result = !repo ? "refused" : pattern->matches(*repo) ? "match" : "no match";
    EXPECT_EQ(result, row[3]) << row[0] << " against " << row[1];
  }
}

TEST(PolicyPage, HasATableOfHostsThatHolds) {
  const auto rows = table(page(), "| host of a rule |");
  EXPECT_GE(rows.size(), 7U);
  for (const auto& row : rows) {
    const auto pattern = policy::HostPattern::parse(row.at(0));
    const auto host = policy::HostName::parse(row.at(1));
    ASSERT_TRUE(pattern && host) << row[0] << row[1];
    EXPECT_EQ(pattern->matches(*host) ? "yes" : "no", row.at(2)) << row[0] << " against " << row[1];
  }
}

TEST(PolicyPage, HasATableOfPathsThatHolds) {
  const auto rows = table(page(), "| path of a rule |");
  EXPECT_GE(rows.size(), 15U);
  for (const auto& row : rows) {
    const auto pattern = policy::PathPattern::parse(row.at(0));
    ASSERT_TRUE(pattern) << row[0];
    const auto path = policy::HttpPath::parse(row.at(1));
    const char* result = !path ? "refused" : pattern->matches(*path) ? "yes" : "no";
    EXPECT_EQ(result, row.at(2)) << row[0] << " against " << row[1];
  }
}

// Each name in backquotes under the heading `from`, up to the next one.
std::vector<std::string> names_under(const std::string& markdown, const std::string& from) {
  const std::size_t begin = markdown.find(from);
  if (begin == std::string::npos) return {};
  const std::string text = markdown.substr(begin, markdown.find("\n#", begin + 1) - begin);
  std::vector<std::string> names;
  const auto pieces = split(text, '`');
  for (std::size_t i = 1; i < pieces.size(); i += 2) names.emplace_back(pieces[i]);
  return names;
}

TEST(PolicyPage, NamesEveryHostThatIsRefusedUnlessItIsMeant) {
  for (const auto& [names, heading] :
       {std::pair{shared_names(), "#### Wildcards"}, std::pair{doh_names(), "#### Hosts that answer DNS"}}) {
    const auto listed = names_under(page(), heading);
    for (const std::string_view name : names) {
      EXPECT_TRUE(std::ranges::find(listed, name) != listed.end()) << name << " under " << heading;
    }
  }
}

TEST(PolicyPage, HasATableOfApprovalsThatHolds) {
  const auto rows = table(page(), "| approved | access |");
  EXPECT_GE(rows.size(), 6U);
  const auto keys = [](const std::string& repo, const std::string& access) {
    return "repo = \"" + repo + "\"\naccess = \"" + access + "\"\ncredential = \"github\"\n";
  };
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 5U);
    const auto config = parse_operator_config(
        "version = 1\n[credential.github]\nsource = { file = \"/run/keys/github\" }\n[[approve]]\n" +
            keys(row[0], row[1]),
        "config.toml");
    ASSERT_TRUE(config) << joined(config.error());
    const auto policy =
        parse_policy("version = 1\n[[git]]\n" + keys(row[2], row[3]), "sallyport.toml", *config);
    ASSERT_TRUE(policy) << joined(policy.error());
    EXPECT_EQ(unapproved_rules(*policy, *config).empty() ? "not needed" : "needed", row[4])
        << row[0] << row[2];
  }
}

TEST(PolicyPage, HasATableOfKindsThatHolds) {
  const auto rows = table(page(), "| kind | case of owner");
  EXPECT_EQ(rows.size(), 5U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 5U);
    const auto kind = policy::host_kind_from_name(row[0]);
    ASSERT_TRUE(kind) << row[0];
    EXPECT_EQ(row[1], policy::folds_case(*kind) ? "folded" : "compared");
    EXPECT_EQ(row[2], policy::nests(*kind) ? "yes" : "no");
    EXPECT_EQ(row[3], policy::basic_user(*kind));
    if (kind != policy::HostKind::Generic) {
      EXPECT_EQ(policy::well_known_kind(*policy::HostName::parse(row[4])), *kind);
    }
  }
}

TEST(PolicyPage, HasATableOfTimeoutsWithTheirDefaults) {
  const auto rows = table(page(), "| timeout | default |");
  EXPECT_EQ(rows.size(), 5U);
  std::string file = "version = 1\n[timeouts]\n";
  for (const auto& row : rows) file += row.at(0) + " = \"" + row.at(1) + "\"\n";
  const auto config = parse_operator_config(file, "config.toml", "/home/me");
  ASSERT_TRUE(config) << joined(config.error());
  EXPECT_EQ(config->timeouts, policy::Timeouts{});
}

TEST(PolicyPage, HasATableOfLimitsWithTheirDefaults) {
  const auto rows = table(page(), "| limit | default |");
  EXPECT_EQ(rows.size(), 13U);
  std::string file = "version = 1\n[limits]\n";
  for (const auto& row : rows) file += row.at(0) + " = " + row.at(1) + "\n";
  const auto config = parse_operator_config(file, "config.toml", "/home/me");
  ASSERT_TRUE(config) << joined(config.error());
  EXPECT_EQ(config->limits, policy::Limits{});
}

TEST(PolicyPage, NamesCodesThatExist) {
  const auto rows = table(page(), "| code of the refusal");
  EXPECT_EQ(rows.size(), 10U);
  for (const auto& row : rows) EXPECT_TRUE(reason_from_code(row.at(0))) << row.at(0);
}

}  // namespace
}  // namespace sallyport::config
