// Reading the engine's JSON strictly: what must be there is there and of its kind, or the error names the
// field ("HostConfig.Privileged: missing"). What is not asked for is ignored.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::engine {

// Nested deeper than this is no answer of an engine.
inline constexpr std::size_t kMaxJsonDepth = 32;

// `what` names it in the error: "GET /info".
Result<boost::json::value> parse_json(std::string_view text, std::string_view what);

// The fields of one object. The first problem is kept, and everything read after it is empty: a reader asks
// for all its fields, and looks once at the end whether there is one.
class Fields {
 public:
  // The whole document, which shall be an object. Both outlive this and all that comes from it; `problem` is
  // "" as long as all is well.
  Fields(const boost::json::value& document, std::string& problem);

  // Missing or null counts as absent: an error for those without `_or`.
  std::string text(const char* name);
  std::string text_or_empty(const char* name);
  bool flag(const char* name);
  bool flag_or_false(const char* name);
  std::int64_t number(const char* name);
  std::int64_t number_or_zero(const char* name);
  // Absent: empty.
  std::vector<std::string> texts(const char* name);
  std::map<std::string, std::string> text_map(const char* name);
  // Absent and empty are two things.
  std::optional<std::vector<std::string>> optional_texts(const char* name);

  // They may be null, but an answer without them is of an engine that we do not know.
  void expect(std::initializer_list<const char*> names);

  Fields object(const char* name);
  // Absent: one without fields.
  Fields object_or_empty(const char* name);
  // Of an array of objects.
  std::vector<Fields> objects(const char* name);
  // Of an object of objects; null ones have no fields.
  std::vector<std::pair<std::string, Fields>> members(const char* name);

 private:
  Fields(const boost::json::object* object, std::string path, std::string* problem)
      : object_(object), path_(std::move(path)), problem_(problem) {}

  const boost::json::value* find(const char* name) const;
  const boost::json::value* require(const char* name);
  void complain(std::string_view name, std::string_view what);
  std::string path_to(std::string_view name) const;
  std::string text_of(const boost::json::value* value, std::string_view name);
  std::int64_t number_of(const boost::json::value* value, const char* name);
  bool flag_of(const boost::json::value* value, const char* name);
  Fields object_of(const boost::json::value* value, std::string_view name);

  const boost::json::object* object_;
  std::string path_;
  std::string* problem_;
};

}  // namespace sallyport::engine
