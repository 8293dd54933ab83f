// The bodies of calls: JSON with exactly one reading, and getters whose errors name the field, as in
// `sessions: limits.memory: must be a size like "512MiB"`.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::control {

inline constexpr std::size_t kMaxJsonDepth = 16;
inline constexpr std::size_t kMaxJsonTextBytes = 4096;  // unless the getter is told another
inline constexpr std::size_t kMaxJsonItems = 1024;      // of a list or a map

// RFC 8259 without its leniency: one value and nothing behind it, UTF-8, no key twice, no NUL in a text,
// every number finite.
Result<boost::json::value> parse_json(std::string_view text);

class JsonReader {
 public:
  // `what` begins every message. `value` outlives the reader.
  JsonReader(std::string what, const boost::json::value& value);
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // Each reads one field: nullopt when it is absent, or is not what it must be.
  std::optional<std::string> text(std::string_view key, std::size_t max_bytes = kMaxJsonTextBytes);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t min, std::int64_t max);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::uint64_t> size(std::string_view key);  // "512MiB", bytes
  std::optional<std::vector<std::string>> texts(std::string_view key, std::size_t max_items = kMaxJsonItems);
  std::optional<std::map<std::string, std::string>> text_map(std::string_view key,
                                                             std::size_t max_items = kMaxJsonItems);
  // Calls back with the object, if it is there.
  void object(std::string_view key, const std::function<void(JsonReader&)>& read);

  // Complains when the field is absent.
  void require(std::string_view key);
  // For what a type cannot say: `must` goes on from the field's name, "must be an absolute path".
  void complain(std::string_view key, std::string must);

  // The first complaint, or that a field is there which nobody asked for.
  Status finish();

 private:
  JsonReader(JsonReader& root, std::string prefix, const boost::json::object& fields);

  const boost::json::value* find(std::string_view key);
  void complain_once(std::string sentence);
  void check_known();

  JsonReader* root_;  // itself, but of an object within
  std::string prefix_;
  const boost::json::object* fields_ = nullptr;
  std::set<std::string, std::less<>> known_;
  std::optional<std::string> problem_;  // the root's alone
};

}  // namespace sallyport::control
