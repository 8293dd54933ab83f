// The path of an HTTP request, read in exactly one way, and the patterns that grant paths. Nothing is
// repaired: what is forwarded is the very text that was judged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/glob.h"

namespace sallyport::policy {

class HttpPath {
 public:
  // An origin-form target (RFC 9112, 3.2.1): path, and perhaps a query. Segments are compared
  // percent-decoded. BadRequest for whatever upstreams may read in another way: dot segments (encoded ones,
  // and those with parameters as in "/..;/"), empty segments but a last one, backslashes, control characters,
  // encoded or not; a '%' that begins no triplet, or whose decoded text has a triplet again; text that is not
  // UTF-8; a query with a "_method" (frameworks take it for the method). TargetTooLong over kMaxTargetBytes.
  static Result<HttpPath> parse(std::string_view target);

  const std::string& target() const { return target_; }
  // Decoded; "/" has one, which is empty, and a trailing slash makes an empty last one.
  const std::vector<std::string>& segments() const { return segments_; }
  // "%2F" is inside a segment. Only a rule that says so allows it: many servers take it for a separator.
  bool has_encoded_slash() const { return has_encoded_slash_; }
  // A URL of git's protocol, or one that some server may take for it. Such requests are judged by [[git]]
  // rules alone.
  bool is_git() const;
  // Raw, without the '?'; "" when there is none. No rule is about it.
  std::string_view query() const;

 private:
  HttpPath() = default;
  std::string target_;
  std::vector<std::string> segments_;
  bool has_encoded_slash_ = false;
};

// "/v1/models/*": '*' stands for any run of characters within one segment, and a whole segment of '*' for a
// segment that is not empty; "**" as a whole segment for any number of segments, none included.
class PathPattern {
 public:
  static constexpr std::size_t kMaxBytes = 1024;
  static constexpr std::size_t kMaxSegments = 64;

  // Error::detail is a sentence for the person who wrote the rule.
  static Result<PathPattern> parse(std::string_view text);

  bool matches(const HttpPath& path, Case rule = Case::Exact) const;
  const std::string& str() const { return text_; }
  // Every path that `other` matches is matched by this one too, as far as the two texts show it.
  bool covers(const PathPattern& other) const;

  bool operator==(const PathPattern&) const = default;

 private:
  PathPattern() = default;
  std::string text_;
  std::vector<std::string> segments_;
};

}  // namespace sallyport::policy
