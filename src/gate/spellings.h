// For tests: a request in other spellings, which change nothing about what it is or what is wrong with it.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace sallyport::gate::testing {

struct Head {
  std::string request_line;
  std::vector<std::string> fields;
};
using Rewrite = std::function<void(Head&)>;

inline void rewrite_fields(
    Head& head, const std::function<std::string(std::string_view name, std::string_view value)>& as) {
  for (std::string& field : head.fields) {
    const std::size_t colon = field.find(':');
    if (colon == std::string::npos || colon == 0) continue;
    field = as(std::string_view(field).substr(0, colon), std::string_view(field).substr(colon + 1));
  }
}

inline std::string uppered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

inline const std::vector<std::pair<std::string, Rewrite>> kRewrites{
    {"names in lower case",
     [](Head& head) {
       rewrite_fields(head, [](auto name, auto value) { return lowered(name) + ":" + std::string(value); });
     }},
    {"names in upper case",
     [](Head& head) {
       rewrite_fields(head, [](auto name, auto value) { return uppered(name) + ":" + std::string(value); });
     }},
    {"blanks around values",
     [](Head& head) {
       rewrite_fields(head, [](auto name, auto value) {
         return std::string(name) + ": \t" + std::string(value) + " \t";
       });
     }},
    {"no blank before values",
     [](Head& head) {
       rewrite_fields(
           head, [](auto name, auto value) { return std::string(name) + ":" + std::string(trimmed(value)); });
     }},
    {"fields the other way round", [](Head& head) { std::ranges::reverse(head.fields); }},
    {"a field before", [](Head& head) { head.fields.insert(head.fields.begin(), "X-Before: 1"); }},
    {"a field behind", [](Head& head) { head.fields.emplace_back("X-Behind: 1"); }},
    {"a keep-alive that is asked for",
     [](Head& head) { head.fields.emplace_back("Connection: keep-alive"); }},
};

struct Spelling {
  std::string how;
  std::string bytes;
};

// Of bytes that begin with one whole head; none where lines do not end as they shall: rewriting would mend
// them.
inline std::vector<Spelling> other_spellings(const std::string& bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  const std::string head_bytes = bytes.substr(0, end);
  if (head_bytes.find('\n') != bytes.find("\r\n") + 1 ||
      std::ranges::count(head_bytes, '\n') != std::ranges::count(head_bytes, '\r')) {
    return {};
  }
  Head head;
  for (std::string_view line : split(head_bytes, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    head.fields.emplace_back(line);
  }
  head.request_line = head.fields.front();
  head.fields.erase(head.fields.begin());

  std::vector<Spelling> spellings;
  for (const auto& [how, rewrite] : kRewrites) {
    Head other = head;
    rewrite(other);
    std::string spelled = other.request_line;
    for (const std::string& field : other.fields) spelled += "\r\n" + field;
    spellings.push_back({how, spelled + bytes.substr(end)});
  }
  return spellings;
}

}  // namespace sallyport::gate::testing
