#include "control/json_reader.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>

#include "base/text.h"
#include "config/units.h"

namespace sallyport::control {
namespace {

namespace json = boost::json;

// What json::parse() would take without a word. Sees each key and number once, before a value is made of
// them.
struct Strictness {
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  using Code = json::error_code;
  using View = json::string_view;

  bool refuse(std::string what, Code& code) {
    problem = std::move(what);
    code = json::error::syntax;
    return false;
  }
  bool no_nul(View text, Code& code) {
    return text.find('\0') == View::npos || refuse("a text has a NUL in it", code);
  }

  bool on_object_begin(Code&) {
    objects.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t, Code&) {
    objects.pop_back();
    return true;
  }
  bool on_key_part(View part, std::size_t, Code& code) {
    key.append(part.data(), part.size());
    return no_nul(part, code);
  }
  bool on_key(View part, std::size_t count, Code& code) {
    if (!on_key_part(part, count, code)) return false;
    const auto [at, is_new] = objects.back().insert(std::exchange(key, {}));
    return is_new || refuse(fmt::format("the field \"{}\" comes twice", escaped(*at, 64)), code);
  }
  bool on_string_part(View part, std::size_t, Code& code) { return no_nul(part, code); }
  bool on_string(View part, std::size_t, Code& code) { return no_nul(part, code); }
  bool on_double(double, View, Code& code) { return refuse("a number is not whole, or out of range", code); }
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(std::int64_t, View, Code&) { return true; }
  bool on_uint64(std::uint64_t, View, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

  std::vector<std::set<std::string>> objects;  // the keys of those that are open
  std::string key;
  std::string problem;
};

std::unexpected<Error> not_json(const std::string& why) {
  return fail(Reason::BadRequest, "the body cannot be read as JSON: " + why);
}

}  // namespace

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::basic_parser<Strictness> strict(options);
  json::error_code code;
  const std::size_t read = strict.write_some(false, text.data(), text.size(), code);
  if (!strict.handler().problem.empty()) return not_json(strict.handler().problem);
  if (code == json::error::too_deep) return not_json(fmt::format("more than {} levels", kMaxJsonDepth));
  if (code) return not_json(code.message());
  if (read < text.size()) return not_json("something follows the value");
  auto value = json::parse(json::string_view(text.data(), text.size()), code, {}, options);
  if (code) return not_json(code.message());
  return value;
}

JsonReader::JsonReader(std::string what, const json::value& value)
    : root_(this), prefix_(std::move(what) + ": ") {
  fields_ = value.if_object();
  if (fields_ == nullptr) complain_once(prefix_ + "the body must be an object");
}

JsonReader::JsonReader(JsonReader& root, std::string prefix, const json::object& fields)
    : root_(&root), prefix_(std::move(prefix)), fields_(&fields) {}

const json::value* JsonReader::find(std::string_view key) {
  known_.emplace(key);
  return fields_ == nullptr ? nullptr : fields_->if_contains(json::string_view(key.data(), key.size()));
}

void JsonReader::complain_once(std::string sentence) {
  if (!root_->problem_) root_->problem_ = std::move(sentence);
}

void JsonReader::complain(std::string_view key, std::string must) {
  complain_once(fmt::format("{}{}: {}", prefix_, key, must));
}

void JsonReader::require(std::string_view key) {
  if (find(key) == nullptr) complain(key, "is missing");
}

std::optional<std::string> JsonReader::text(std::string_view key, std::size_t max_bytes) {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const json::string* text = value->if_string(); text != nullptr && text->size() <= max_bytes) {
    return std::string(text->data(), text->size());
  }
  complain(key, fmt::format("must be a text of at most {} bytes", max_bytes));
  return std::nullopt;
}

std::optional<std::int64_t> JsonReader::integer(std::string_view key, std::int64_t min, std::int64_t max) {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const std::int64_t* number = value->if_int64(); number != nullptr && *number >= min && *number <= max) {
    return *number;
  }
  complain(key, fmt::format("must be a whole number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<bool> JsonReader::flag(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const bool* flag = value->if_bool()) return *flag;
  complain(key, "must be true or false");
  return std::nullopt;
}

std::optional<std::uint64_t> JsonReader::size(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const json::string* text = value->if_string()) {
    if (const auto bytes = config::parse_size({text->data(), text->size()})) return bytes;
  }
  complain(key, "must be a size like \"512MiB\"");
  return std::nullopt;
}

std::optional<std::vector<std::string>> JsonReader::texts(std::string_view key, std::size_t max_items) {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> list;
  const json::array* items = value->if_array();
  bool good = items != nullptr && items->size() <= max_items;
  for (std::size_t i = 0; good && i < items->size(); ++i) {
    const json::string* text = (*items)[i].if_string();
    good = text != nullptr;
    if (good) list.emplace_back(text->data(), text->size());
  }
  if (good) return list;
  complain(key, fmt::format("must be a list of at most {} texts", max_items));
  return std::nullopt;
}

std::optional<std::map<std::string, std::string>> JsonReader::text_map(std::string_view key,
                                                                       std::size_t max_items) {
  const json::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  std::map<std::string, std::string> map;
  const json::object* fields = value->if_object();
  bool good = fields != nullptr && fields->size() <= max_items;
  if (good) {
    for (const auto& [name, field] : *fields) {
      const json::string* text = field.if_string();
      good = good && text != nullptr;
      if (good) map.emplace(std::string(name), std::string(text->data(), text->size()));
    }
  }
  if (good) return map;
  complain(key, fmt::format("must be an object of at most {} texts", max_items));
  return std::nullopt;
}

void JsonReader::object(std::string_view key, const std::function<void(JsonReader&)>& read) {
  const json::value* value = find(key);
  if (value == nullptr) return;
  const json::object* fields = value->if_object();
  if (fields == nullptr) return complain(key, "must be an object");
  JsonReader within(*root_, fmt::format("{}{}.", prefix_, key), *fields);
  read(within);
  within.check_known();
}

void JsonReader::check_known() {
  if (fields_ == nullptr) return;
  for (const auto& [key, value] : *fields_) {
    const std::string_view name(key.data(), key.size());
    if (!known_.contains(name)) complain(escaped(name, 64), "is no field of this call");
  }
}

Status JsonReader::finish() {
  check_known();
  if (problem_) return fail(Reason::BadRequest, *problem_);
  return {};
}

}  // namespace sallyport::control
