#include "config/table_reader.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "policy/similar.h"

namespace sallyport::config {

std::string shown(std::string_view text) {
  // No token in use is shorter; names of hosts and repositories are longer and are not shown by this.
  constexpr std::size_t kMaxShownBytes = 16;
  if (text.empty()) return "''";
  if (text.size() > kMaxShownBytes) return "the value";
  return "'" + escaped(text) + "'";
}

TableReader::TableReader(const Value& table, std::string what, Problems& problems)
    : table_(table), what_(std::move(what)), problems_(problems) {}

const Entry* TableReader::look_up(std::string_view key) {
  known_.push_back(key);
  const auto found = std::ranges::find(table_.entries, key, &Entry::key);
  return found == table_.entries.end() ? nullptr : &*found;
}

const Value* TableReader::find(std::string_view key) {
  suggested_.push_back(key);
  const Entry* entry = look_up(key);
  return entry == nullptr ? nullptr : &entry->value;
}

const Value* TableReader::find(std::string_view key, Value::Kind kind) {
  const Value* value = find(key);
  if (value == nullptr || value->kind == kind) return value;
  problems_.push_back({value->place,
                       "'" + std::string(key) + "' must be " + std::string(name(kind)) + ", not " +
                           std::string(name(value->kind)),
                       ""});
  return nullptr;
}

const Value* TableReader::require(std::string_view key, Value::Kind kind, std::string_view remedy) {
  const Value* value = find(key, kind);
  const bool missing = std::ranges::find(table_.entries, key, &Entry::key) == table_.entries.end();
  if (missing) {
    problems_.push_back({table_.place, what_ + " has no '" + std::string(key) + "'", std::string(remedy)});
  }
  return value;
}

void TableReader::refuse(std::string_view key, std::string_view message, std::string_view remedy) {
  const Entry* entry = look_up(key);
  if (entry != nullptr) {
    problems_.push_back({entry->place, std::string(message), std::string(remedy)});
  }
}

void TableReader::refuse_for_now(std::string_view key) {
  refuse(key, "'" + std::string(key) + "' is not supported by this version of Sallyport yet", "remove it");
}

void TableReader::finish() {
  for (const Entry& entry : table_.entries) {
    if (std::ranges::find(known_, entry.key) != known_.end()) continue;
    const auto similar = policy::most_similar(entry.key, suggested_);
    const std::string remedy = similar ? "did you mean '" + std::string(*similar) + "'?" : "remove it";
    // A key is text of the file too: somebody may have put a token where a key belongs.
    const std::string key = similar ? "'" + escaped(entry.key) + "'" : shown(entry.key);
    problems_.push_back(
        {entry.place, what_ + " has no key " + (key == "the value" ? "like this one" : key), remedy});
  }
}

void sort_by_place(Problems& problems) {
  std::ranges::sort(problems, {}, [](const Problem& problem) {
    return std::tuple(problem.place.line, problem.place.column, std::string_view(problem.message));
  });
}

}  // namespace sallyport::config
