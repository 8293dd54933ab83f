// For tests: the tables of tests/data/front, and what a connection comes to when it is served without a
// socket.
#pragma once

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace sallyport::gate::testing {

// \r \n \t \0 \\ \xHH, and \(N TEXT) for TEXT N times.
inline std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '\\') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const char kind = text.at(1);
    text.remove_prefix(2);
    if (kind == 'x') {
      out += static_cast<char>(hex_value(text.at(0)) << 4U | hex_value(text.at(1)));
      text.remove_prefix(2);
    } else if (kind == '(') {
      const std::size_t space = text.find(' ');
      const std::size_t end = text.find(')');
      const std::string piece = unescaped(text.substr(space + 1, end - space - 1));
      for (auto left = parse_decimal(text.substr(0, space)).value(); left > 0; --left) out += piece;
      text.remove_prefix(end + 1);
    } else {
      static const std::map<char, char> kBytes{
          {'r', '\r'}, {'n', '\n'}, {'t', '\t'}, {'0', '\0'}, {'\\', '\\'}};
      out += kBytes.at(kind);
    }
  }
  return out;
}

inline constexpr std::string_view kGoodGet =
    "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\\r\\nHost: forge.test\\r\\n";
inline constexpr std::string_view kGoodPost =
    "POST /acme/widget/git-upload-pack HTTP/1.1\\r\\nHost: forge.test\\r\\n"
    "Content-Type: application/x-git-upload-pack-request\\r\\n";
inline constexpr std::string_view kGoodPush =
    "POST /acme/widget/git-receive-pack HTTP/1.1\\r\\nHost: forge.test\\r\\n"
    "Content-Type: application/x-git-receive-pack-request\\r\\n";

// The lines of a table, without comments, as their columns.
inline std::vector<std::vector<std::string>> read_table(const std::string& name) {
  std::ifstream file(std::string(SALLYPORT_SOURCE_DIR) + "/tests/data/front/" + name);
  if (!file) throw std::runtime_error("no table " + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const auto columns = split(line, '\t');
    rows.emplace_back(columns.begin(), columns.end());
  }
  return rows;
}

// A payload that may begin with one of these names, whose text stands there then.
inline std::string with_macro(std::string payload,
                              const std::vector<std::pair<std::string_view, std::string_view>>& macros) {
  for (const auto& [macro, text] : macros) {
    if (payload.starts_with(macro)) return payload.replace(0, macro.size(), text);
  }
  return payload;
}

struct Case {
  std::string name;
  std::string reason;  // "-": it is carried out
  std::string payload;
};

inline std::vector<Case> read_cases() {
  std::vector<Case> cases;
  for (const auto& row : read_table("requests.tsv")) {
    const std::string payload =
        with_macro(row.at(2), {{"$GET", kGoodGet}, {"$POST", kGoodPost}, {"$PUSH", kGoodPush}});
    cases.push_back({row.at(0), row.at(1), unescaped(payload)});
  }
  return cases;
}

}  // namespace sallyport::gate::testing
