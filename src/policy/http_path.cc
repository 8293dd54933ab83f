#include "policy/http_path.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/text.h"
#include "policy/git_route.h"

namespace sallyport::policy {
namespace {

constexpr std::string_view kAnySegments = "**";

std::unexpected<Error> unreadable(std::string what) {
  return fail(Reason::BadRequest, "the path has " + std::move(what));
}

bool begins_triplet(std::string_view text) {
  return text.size() >= 3 && text[0] == '%' && is_hex(text[1]) && is_hex(text[2]);
}

// nullopt for a '%' that begins no triplet.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (!begins_triplet(text.substr(i))) return std::nullopt;
    decoded += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
    i += 2;
  }
  return decoded;
}

// RFC 3629, 4, in ranges: the shortest form of a code point that is no surrogate.
struct Utf8Range {
  std::uint8_t first_low, first_high;
  std::uint8_t second_low, second_high;
  std::size_t bytes;
};
constexpr std::array kUtf8{
    Utf8Range{0xc2, 0xdf, 0x80, 0xbf, 2}, Utf8Range{0xe0, 0xe0, 0xa0, 0xbf, 3},
    Utf8Range{0xe1, 0xec, 0x80, 0xbf, 3}, Utf8Range{0xed, 0xed, 0x80, 0x9f, 3},
    Utf8Range{0xee, 0xef, 0x80, 0xbf, 3}, Utf8Range{0xf0, 0xf0, 0x90, 0xbf, 4},
    Utf8Range{0xf1, 0xf3, 0x80, 0xbf, 4}, Utf8Range{0xf4, 0xf4, 0x80, 0x8f, 4},
};

bool in_range(char c, std::uint8_t low, std::uint8_t high) {
  const auto byte = static_cast<std::uint8_t>(c);
  return low <= byte && byte <= high;
}

// How many bytes the character at the front has; 0: it is none.
std::size_t utf8_character(std::string_view text) {
  if (in_range(text[0], 0, 0x7f)) return 1;
  for (const Utf8Range& range : kUtf8) {
    if (!in_range(text[0], range.first_low, range.first_high)) continue;
    if (text.size() < range.bytes || !in_range(text[1], range.second_low, range.second_high)) return 0;
    const std::string_view rest = text.substr(2, range.bytes - 2);
    return std::ranges::all_of(rest, [](char c) { return in_range(c, 0x80, 0xbf); }) ? range.bytes : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = utf8_character(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool is_control(char c) {
  return in_range(c, 0, 0x1f) || c == 0x7f;
}

bool has_triplet(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_triplet(text.substr(i))) return true;
  }
  return false;
}

// "..;x" too: servers that know parameters drop them, and are left with the dots.
bool is_dot_segment(std::string_view segment) {
  const std::string_view name = segment.substr(0, segment.find(';'));
  return name == "." || name == "..";
}

Result<std::string> read_segment(std::string_view raw) {
  auto segment = percent_decoded(raw);
  if (!segment) return unreadable("a '%' that begins no triplet");
  if (std::ranges::any_of(*segment, is_control)) return unreadable("a control character");
  if (segment->find('\\') != std::string::npos) return unreadable("a backslash");
  if (has_triplet(*segment)) return unreadable("text that is encoded twice");
  if (!is_utf8(*segment)) return unreadable("text that is not UTF-8");
  // Also between slashes that are encoded.
  if (std::ranges::any_of(split(*segment, '/'), is_dot_segment)) return unreadable("a dot segment");
  return *std::move(segment);
}

Status check_query(std::string_view query) {
  for (const std::string_view parameter : split(query, '&')) {
    const auto name = percent_decoded(parameter.substr(0, parameter.find('=')));
    if (name && equals_ignoring_case(*name, "_method")) {
      return fail(Reason::BadRequest, "the query has a '_method', which some servers take for the method");
    }
  }
  return {};
}

bool is_path_char(char c) {
  return is_visible(c) && c != '#' && c != '?' && c != '\\';
}

// Segments `pattern` against `path`, as glob_matches() does with characters: on a mismatch only the last "**"
// takes one segment more.
template <typename Path, typename MatchSegment>
bool segments_match(const std::vector<std::string>& pattern, const Path& path, MatchSegment match) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::optional<std::size_t> star;
  std::size_t star_text = 0;
  while (t < path.size()) {
    if (p < pattern.size() && pattern[p] == kAnySegments) {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && match(pattern[p], path[t])) {
      ++p;
      ++t;
    } else if (star) {
      p = *star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == kAnySegments) ++p;
  return p == pattern.size();
}

bool segment_matches(std::string_view pattern, std::string_view segment, Case rule) {
  if (pattern == "*" && segment.empty()) return false;
  return glob_matches(pattern, segment, rule);
}

}  // namespace

Result<HttpPath> HttpPath::parse(std::string_view target) {
  if (target.size() > kMaxTargetBytes)
    return fail(Reason::TargetTooLong, "the target is longer than 4096 bytes");
  const std::size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  if (!path.starts_with('/')) return unreadable("no '/' at its beginning");
  if (!std::ranges::all_of(path, is_path_char)) return unreadable("a character that may not stand in it");
  HttpPath result;
  result.target_ = target;
  if (question != std::string_view::npos) {
    if (target.find('#') != std::string_view::npos) return unreadable("a fragment");
    if (Status checked = check_query(target.substr(question + 1)); !checked) return fail(std::move(checked));
  }
  const auto raw = split(path.substr(1), '/');
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i].empty() && i + 1 < raw.size()) return unreadable("an empty segment");
    auto segment = read_segment(raw[i]);
    if (!segment) return fail(std::move(segment));
    result.has_encoded_slash_ |= segment->find('/') != std::string::npos;
    result.segments_.push_back(*std::move(segment));
  }
  return result;
}

bool HttpPath::is_git() const {
  std::string joined;
  for (const std::string& segment : segments_) joined += "/" + lowered(segment);
  while (joined.ends_with('/')) joined.pop_back();
  const std::string_view last = std::string_view(joined).substr(0, joined.find(';', joined.rfind('/') + 1));
  return last.ends_with("/info/refs") || last.ends_with("/git-upload-pack") ||
         last.ends_with("/git-receive-pack");
}

std::string_view HttpPath::query() const {
  const std::size_t question = target_.find('?');
  return question == std::string::npos ? std::string_view{} : std::string_view(target_).substr(question + 1);
}

Result<PathPattern> PathPattern::parse(std::string_view text) {
  const auto unusable = [](std::string sentence) { return fail(Reason::BadRequest, std::move(sentence)); };
  if (!text.starts_with('/')) return unusable("a path begins with '/'");
  if (text.size() > kMaxBytes) return unusable("a path has at most 1024 bytes");
  if (text.find_first_of("?#%\\") != std::string_view::npos) {
    return unusable("a path holds no '?', '#', '%' or '\\': it is compared decoded, and without the query");
  }
  PathPattern result;
  result.text_ = text;
  const auto segments = split(text.substr(1), '/');
  if (segments.size() > kMaxSegments) return unusable("a path has at most 64 segments");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string_view segment = segments[i];
    if (segment.empty() && i + 1 < segments.size())
      return unusable("a path has no empty segment but a last one");
    if (segment != kAnySegments && segment.find(kAnySegments) != std::string_view::npos) {
      return unusable("'**' stands alone between slashes");
    }
    if (is_dot_segment(segment)) return unusable("a path has no '.' and no '..'");
    if (std::ranges::any_of(segment, is_control) || !is_utf8(segment)) {
      return unusable("a path is UTF-8 text without control characters");
    }
    result.segments_.emplace_back(segment);
  }
  return result;
}

bool PathPattern::matches(const HttpPath& path, Case rule) const {
  return segments_match(segments_, path.segments(),
                        [rule](std::string_view pattern, std::string_view segment) {
                          return segment_matches(pattern, segment, rule);
                        });
}

bool PathPattern::covers(const PathPattern& other) const {
  // A '*' of the other is matched as the character that it is, which only a '*' here can do.
  const auto match = [](std::string_view pattern, std::string_view segment) {
    return segment != kAnySegments && segment_matches(pattern, segment, Case::Exact);
  };
  return segments_match(segments_, other.segments_, match);
}

}  // namespace sallyport::policy
