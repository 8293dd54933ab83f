#include "engine/fields.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include "base/text.h"

namespace sallyport::engine {

namespace json = boost::json;

Result<json::value> parse_json(std::string_view text, std::string_view what) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (!error) return value;
  return fail(Reason::EngineRefused,
              fmt::format("the container engine's answer to {} is no JSON: {}", what, error.message()));
}

Fields::Fields(const json::value& document, std::string& problem)
    : object_(document.if_object()), problem_(&problem) {
  if (object_ == nullptr) problem = "it is no object";
}

std::string Fields::path_to(std::string_view name) const {
  // Names of members are the engine's users' words.
  return path_.empty() ? escaped(name) : fmt::format("{}.{}", path_, escaped(name));
}

void Fields::complain(std::string_view name, std::string_view what) {
  if (problem_->empty()) *problem_ = fmt::format("{}: {}", path_to(name), what);
}

const json::value* Fields::find(const char* name) const {
  if (object_ == nullptr) return nullptr;
  const json::value* value = object_->if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const json::value* Fields::require(const char* name) {
  const json::value* value = find(name);
  if (value == nullptr) complain(name, "missing");
  return value;
}

std::string Fields::text_of(const json::value* value, std::string_view name) {
  if (value == nullptr) return {};
  if (const json::string* text = value->if_string()) return std::string(text->data(), text->size());
  complain(name, "not a string");
  return {};
}

std::int64_t Fields::number_of(const json::value* value, const char* name) {
  if (value == nullptr) return 0;
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  if (!error) return number;
  complain(name, "not a whole number");
  return 0;
}

bool Fields::flag_of(const json::value* value, const char* name) {
  if (value == nullptr) return false;
  if (const bool* flag = value->if_bool()) return *flag;
  complain(name, "not true or false");
  return false;
}

Fields Fields::object_of(const json::value* value, std::string_view name) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  if (value != nullptr && object == nullptr) complain(name, "not an object");
  return Fields(object, path_to(name), problem_);
}

std::string Fields::text(const char* name) {
  return text_of(require(name), name);
}

std::string Fields::text_or_empty(const char* name) {
  return text_of(find(name), name);
}

bool Fields::flag(const char* name) {
  return flag_of(require(name), name);
}

bool Fields::flag_or_false(const char* name) {
  return flag_of(find(name), name);
}

std::int64_t Fields::number(const char* name) {
  return number_of(require(name), name);
}

std::int64_t Fields::number_or_zero(const char* name) {
  return number_of(find(name), name);
}

std::optional<std::vector<std::string>> Fields::optional_texts(const char* name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  const json::array* array = value->if_array();
  if (array == nullptr) {
    complain(name, "not a list");
    return texts;
  }
  for (const json::value& item : *array) texts.push_back(text_of(&item, name));
  return texts;
}

std::vector<std::string> Fields::texts(const char* name) {
  return optional_texts(name).value_or(std::vector<std::string>());
}

std::map<std::string, std::string> Fields::text_map(const char* name) {
  std::map<std::string, std::string> texts;
  const json::value* value = find(name);
  if (value == nullptr) return texts;
  Fields inside = object_of(value, name);
  if (inside.object_ == nullptr) return texts;
  for (const auto& [key, item] : *inside.object_) {
    const std::string_view plain(key.data(), key.size());
    texts.emplace(plain, inside.text_of(&item, plain));
  }
  return texts;
}

void Fields::expect(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (object_ != nullptr && !object_->contains(name)) complain(name, "missing");
  }
}

Fields Fields::object(const char* name) {
  return object_of(require(name), name);
}

Fields Fields::object_or_empty(const char* name) {
  return object_of(find(name), name);
}

std::vector<Fields> Fields::objects(const char* name) {
  std::vector<Fields> found;
  const json::value* value = find(name);
  if (value == nullptr) return found;
  const json::array* array = value->if_array();
  if (array == nullptr) complain(name, "not a list");
  if (array == nullptr) return found;
  for (const json::value& item : *array) {
    found.push_back(object_of(&item, fmt::format("{}[{}]", name, found.size())));
  }
  return found;
}

std::vector<std::pair<std::string, Fields>> Fields::members(const char* name) {
  std::vector<std::pair<std::string, Fields>> found;
  Fields inside = object_of(find(name), name);
  if (inside.object_ == nullptr) return found;
  for (const auto& [key, item] : *inside.object_) {
    const std::string_view plain(key.data(), key.size());
    found.emplace_back(plain, inside.object_of(item.is_null() ? nullptr : &item, plain));
  }
  return found;
}

}  // namespace sallyport::engine
