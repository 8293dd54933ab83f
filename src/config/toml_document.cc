#include "config/toml_document.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace sallyport::config {
namespace {

// Deeper than any of our tables, and shallow enough for every recursion.
constexpr int kMaxDepth = 16;
// toml++ makes one level of recursion of each part of a dotted key, without a limit: a line of dots would
// overflow the stack.
constexpr std::ptrdiff_t kMaxDotsPerLine = 64;

Place place_at(const std::string& file, const toml::source_position& position) {
  return {file, static_cast<int>(position.line), static_cast<int>(position.column)};
}

// The place of a byte offset.
Place place_at(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {file, static_cast<int>(line), static_cast<int>(offset - line_start + 1)};
}

// Those that may stand between the parts of a key. A list of host names on one line has many that do not: in
// a line without escapes, literal and multi-line strings each quote opens or closes, unless all of the line
// is inside a string or a comment. In every other line all dots count, so that nothing can hide.
std::ptrdiff_t dots_of_keys(std::string_view line) {
  const bool plain =
      line.find_first_of("'\\") == std::string_view::npos && line.find("\"\"\"") == std::string_view::npos;
  if (!plain) return std::ranges::count(line, '.');
  std::ptrdiff_t dots = 0;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == '.' && !quoted) ++dots;
  }
  return dots;
}

std::expected<void, Problem> check_bytes(std::string_view text, const std::string& file,
                                         std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return std::unexpected(Problem{{file},
                                   "the file is larger than " + std::to_string(max_bytes >> 20U) + " MiB",
                                   "split it, or use wildcards"});
  }
  if (text.starts_with("\xef\xbb\xbf") || text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return std::unexpected(Problem{
        {file, 1, 1}, "the file begins with a byte order mark", "save it as plain UTF-8 without one"});
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return std::unexpected(
        Problem{place_at(file, text, nul), "the file has a NUL byte", "it must be plain UTF-8 text"});
  }
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (dots_of_keys(text.substr(start, end - start)) > kMaxDotsPerLine) {
      return std::unexpected(
          Problem{place_at(file, text, start), "the line has more than 64 dots", "shorten it"});
    }
    start = end + 1;
  }
  return {};
}

struct Rewording {
  std::string_view theirs;  // the beginning of toml++'s message behind "Error while parsing ...: "
  std::string_view message;
  std::string_view remedy;
};

// Also every message of toml++ that repeats a value.
constexpr std::array kRewordings{
    Rewording{"could not determine value type", "this is not a value", "strings stand in double quotes"},
    Rewording{"Encountered invalid utf-8", "the text is not UTF-8", "save the file as UTF-8"},
    Rewording{"unescaped control characters", "a string has a control character or ends with its line",
              "close it with a double quote"},
    Rewording{"encountered end-of-file", "the file ends too early", "complete the last line"},
    Rewording{"expected a comment or whitespace", "something stands behind the end of the value",
              "put one key on a line"},
};

std::string_view without_scope(std::string_view description) {
  constexpr std::string_view kScope = "Error while parsing ";
  const std::size_t colon = description.find(": ");
  if (description.starts_with(kScope) && colon != std::string_view::npos) {
    description.remove_prefix(colon + 2);
  }
  return description;
}

// toml++ escapes line ends and controls itself; what is left to escape is not ASCII.
std::string printable(std::string_view theirs) {
  std::string text;
  for (const std::string_view piece : split(theirs, '\\')) {
    if (!text.empty()) text += '\\';
    text += escaped(piece);
  }
  return text;
}

// "cannot redefine existing string 'repo'", perhaps with " as table" behind it.
Problem redefined(const Place& place, std::string_view theirs) {
  const std::size_t open = theirs.find('\'');
  const std::size_t close = theirs.rfind('\'');
  const std::string key = open < close && close != std::string_view::npos
                              ? printable(theirs.substr(open, close + 1 - open))
                              : "a key";
  if (theirs.find("' as ") != std::string_view::npos) {
    return {place, key + " is written in two ways",
            "write it as a table or as a list of tables, as the first is"};
  }
  return {place, key + " is given twice", "remove one"};
}

Problem reworded(const toml::parse_error& error, const std::string& file) {
  const Place place = place_at(file, error.source().begin);
  const std::string_view theirs = without_scope(error.description());
  for (const Rewording& row : kRewordings) {
    if (theirs.starts_with(row.theirs)) return {place, std::string(row.message), std::string(row.remedy)};
  }
  if (theirs.find("not representable") != std::string_view::npos) {
    return {place, "the number is too large", ""};
  }
  if (theirs.starts_with("cannot redefine existing")) return redefined(place, theirs);
  return {place, "this is not TOML: " + printable(theirs), ""};
}

std::expected<Value, Problem> convert(const toml::node& node, const std::string& file, int depth);

std::expected<Value, Problem> convert_array(const toml::array& array, Value value, const std::string& file,
                                            int depth) {
  for (const toml::node& item : array) {
    auto converted = convert(item, file, depth + 1);
    if (!converted) return converted;
    value.items.push_back(*std::move(converted));
  }
  return value;
}

std::expected<Value, Problem> convert_table(const toml::table& table, Value value, const std::string& file,
                                            int depth) {
  for (const auto& [key, item] : table) {
    auto converted = convert(item, file, depth + 1);
    if (!converted) return converted;
    value.entries.push_back(
        {std::string(key.str()), place_at(file, key.source().begin), *std::move(converted)});
  }
  // toml++ sorts by key.
  std::ranges::stable_sort(
      value.entries, {}, [](const Entry& entry) { return std::pair(entry.place.line, entry.place.column); });
  return value;
}

std::expected<Value, Problem> convert(const toml::node& node, const std::string& file, int depth) {
  Value value;
  value.place = place_at(file, node.source().begin);
  if (depth > kMaxDepth) {
    return std::unexpected(Problem{value.place, "tables are nested too deeply", "no key of ours is"});
  }
  if (const toml::array* array = node.as_array()) {
    value.kind = Value::Kind::Array;
    return convert_array(*array, std::move(value), file, depth);
  }
  if (const toml::table* table = node.as_table()) {
    value.kind = Value::Kind::Table;
    return convert_table(*table, std::move(value), file, depth);
  }
  if (const auto* text = node.as_string()) {
    value.kind = Value::Kind::String;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = Value::Kind::Integer;
    value.integer = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = Value::Kind::Boolean;
    value.boolean = boolean->get();
  } else {
    value.kind = Value::Kind::Other;
  }
  return value;
}

}  // namespace

std::string_view name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::String:
      return "a string";
    case Value::Kind::Integer:
      return "an integer";
    case Value::Kind::Boolean:
      return "true or false";
    case Value::Kind::Array:
      return "an array";
    case Value::Kind::Table:
      return "a table";
    case Value::Kind::Other:
      return "a date or a fraction";
  }
  return "";
}

std::expected<Value, Problem> parse_toml(std::string_view text, const std::string& file,
                                         std::size_t max_bytes) {
  if (auto checked = check_bytes(text, file, max_bytes); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  try {
    return convert(toml::parse(text, file), file, 0);
  } catch (const toml::parse_error& error) {
    return std::unexpected(reworded(error, file));
  }
}

}  // namespace sallyport::config
