#include "audit/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <map>
#include <set>

#include "base/text.h"

namespace sallyport::audit {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::Not;

constexpr Kind kKinds[] = {Kind::SessionStart, Kind::SessionEnd, Kind::Begin, Kind::End,    Kind::Refused,
                           Kind::Refs,         Kind::Credential, Kind::Alarm, Kind::Reload, Kind::Coalesced};

Event full_event(Kind kind) {
  return {.kind = kind,
          .request = "r1",
          .entry = Entry::Tls,
          .destination = "198.18.0.5:443",
          .scheme = "https",
          .host = "github.com",
          .port = 443,
          .method = "POST",
          .path = "/acme/widget/git-receive-pack",
          .reason = Reason::RepoNotGranted,
          .detail = "closest is another",
          .rule = "sallyport.toml:3",
          .credential = "github",
          .refs = {{"refs/heads/main", std::string(40, '0'), std::string(40, 'a')}},
          .refs_total = 7,
          .of = Kind::Refused,
          .count = 3,
          .status = 200,
          .bytes_in = 11,
          .bytes_out = 12,
          .duration = std::chrono::microseconds(13)};
}

Stamp stamp() {
  return {std::chrono::system_clock::time_point(std::chrono::microseconds(1'700'000'000'000'042)), 5, "s1"};
}

json::object read(const std::string& line) {
  return json::parse(line).as_object();
}

// docs/audit.md's tables: rows of a table whose first cell is `code`.
struct Documented {
  std::map<std::string, std::set<std::string>> fields_of_kind;
  std::map<std::string, std::string> type_of_field;
};

Documented read_documentation() {
  Documented documented;
  std::ifstream file(std::string(SALLYPORT_SOURCE_DIR) + "/docs/audit.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (const std::string_view cell : split(line, '|')) cells.emplace_back(trimmed(cell));
    if (cells.size() != 5) continue;
    const std::string key = cells[1].substr(1, cells[1].size() - 2);
    const bool is_field =
        cells[2] == "text" || cells[2] == "number" || cells[2] == "refs" || cells[2] == "time";
    if (is_field) {
      documented.type_of_field[key] = cells[2];
      continue;
    }
    for (const std::string_view field : split(cells[3], ' ')) {
      documented.fields_of_kind[key].insert(std::string(field));
    }
  }
  return documented;
}

bool has_type(const json::value& value, const std::string& type) {
  if (type == "number") return value.is_int64() || value.is_uint64();
  if (type == "refs") {
    if (!value.is_array()) return false;
    for (const json::value& ref : value.as_array()) {
      const json::object& object = ref.as_object();
      if (object.size() != 3 || !object.at("ref").is_string() || !object.at("old").is_string() ||
          !object.at("new").is_string()) {
        return false;
      }
    }
    return true;
  }
  return value.is_string();
}

TEST(JsonLine, OfEveryKindHasExactlyTheDocumentedFields) {
  const Documented documented = read_documentation();
  ASSERT_EQ(documented.fields_of_kind.size(), std::size(kKinds));
  for (const Kind kind : kKinds) {
    SCOPED_TRACE(name(kind));
    const auto row = documented.fields_of_kind.find(std::string(name(kind)));
    ASSERT_NE(row, documented.fields_of_kind.end());
    std::set<std::string> expected = row->second;
    expected.insert({"time", "seq", "session", "container", "kind"});

    std::set<std::string> written;
    for (const auto& field : read(json_line(stamp(), full_event(kind)))) {
      const std::string key(field.key());
      written.insert(key);
      const auto type = documented.type_of_field.find(key);
      ASSERT_NE(type, documented.type_of_field.end()) << key;
      EXPECT_TRUE(has_type(field.value(), type->second)) << key;
    }
    EXPECT_EQ(written, expected);
  }
}

TEST(JsonLine, EveryDocumentedFieldIsInSomeKind) {
  const Documented documented = read_documentation();
  std::set<std::string> used = {"time", "seq", "session", "container", "kind"};
  for (const auto& [kind, fields] : documented.fields_of_kind) used.insert(fields.begin(), fields.end());
  for (const auto& [field, type] : documented.type_of_field) EXPECT_TRUE(used.contains(field)) << field;
}

TEST(JsonLine, OfARefusalIsThisText) {
  Event event = full_event(Kind::Refused);
  event.refs.clear();
  event.refs_total = 0;
  EXPECT_EQ(
      json_line(stamp(), event),
      R"({"time":"2023-11-14T22:13:20.000042Z","seq":5,"session":"s1","kind":"refused","request":"r1",)"
      R"("entry":"tls","destination":"198.18.0.5:443","scheme":"https","host":"github.com","port":443,)"
      R"("method":"POST","path":"/acme/widget/git-receive-pack","rule":"sallyport.toml:3",)"
      R"("reason":"repo_not_granted","detail":"closest is another","refs":[],"refs_total":0,"container":""})"
      "\n");
}

TEST(JsonLine, StaysOneLineAndGivesEveryByteBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  Event event = full_event(Kind::Refused);
  event.path = bytes;
  const std::string line = json_line(stamp(), event);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  for (const char c : line.substr(0, line.size() - 1)) EXPECT_TRUE(c >= ' ' && c < 0x7f);

  // Boost.JSON gives UTF-8: each code point below 256 is one of the bytes.
  std::string back;
  const std::string text(read(line).at("path").as_string());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      back += text[i];
    } else {
      back += static_cast<char>((lead & 0x03U) << 6U | (static_cast<unsigned char>(text[++i]) & 0x3fU));
    }
  }
  EXPECT_EQ(back, bytes);
}

TEST(JsonLine, ForgesNoSecondLineOrField) {
  Event event = full_event(Kind::Refused);
  event.host = "x\",\"kind\":\"begin\"}\n{\"time\":\"";
  const json::object line = read(json_line(stamp(), event));
  EXPECT_EQ(line.at("kind").as_string(), "refused");
  EXPECT_EQ(line.at("host").as_string(), event.host);
}

TEST(JsonLine, MasksTokensWhereverTheyStand) {
  const std::string token = "ghp_" + std::string(36, 'x');
  Event event = full_event(Kind::Begin);
  event.path = "/acme/" + token;
  event.host = token;
  event.rule = token;
  event.refs[0].ref = "refs/heads/" + token;
  EXPECT_THAT(json_line(stamp(), event), Not(HasSubstr(token)));
  event.kind = Kind::Refused;
  event.detail = "tried " + token;
  EXPECT_THAT(json_line(stamp(), event), Not(HasSubstr(token)));
}

}  // namespace
}  // namespace sallyport::audit
