// A TOML file as a tree in which everything knows its place. toml++ stays behind this header: it costs
// seconds to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace sallyport::config {

struct Entry;

struct Value {
  enum class Kind : std::uint8_t { String, Integer, Boolean, Array, Table, Other };

  Kind kind = Kind::Table;
  Place place;
  std::string text;            // String
  std::int64_t integer = 0;    // Integer
  bool boolean = false;        // Boolean
  std::vector<Value> items;    // Array
  std::vector<Entry> entries;  // Table, in the order of the file
};

struct Entry {
  std::string key;
  Place place;
  Value value;
};

std::string_view name(Value::Kind kind);  // "a string"

// The root table. Besides TOML's own rules: at most `max_bytes`, UTF-8 without a byte order mark, no NUL.
// Problems never hold a value of the file.
std::expected<Value, Problem> parse_toml(std::string_view text, const std::string& file,
                                         std::size_t max_bytes);

}  // namespace sallyport::config
