#include "sandbox/git_config.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_key_char(char c) {
  return is_alnum(c) || c == '-';
}

// The states and their order are those of git's own config.c, so that both see the same entries.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Result<std::vector<GitConfigEntry>> read() {
    while (!at_end()) {
      const char c = next();
      Status done;
      if (c == '\n' || is_blank(c)) continue;
      if (c == '#' || c == ';') {
        skip_comment();
      } else if (c == '[') {
        done = read_section();
      } else if (is_alpha(c)) {
        done = read_entry(c);
      } else {
        done = bad("neither a section nor a name");
      }
      if (!done) return fail(std::move(done));
    }
    return std::move(entries_);
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  // A line's end at the end of the text too, and for CR LF.
  char peek() const {
    if (at_end()) return '\n';
    const bool crlf = text_[at_] == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n');
    return crlf ? '\n' : text_[at_];
  }
  char next() {
    const char c = peek();
    if (at_end()) return c;
    if (c == '\n' && text_[at_] == '\r') ++at_;
    if (!at_end()) ++at_;
    if (c == '\n') ++line_;
    return c;
  }
  std::unexpected<Error> bad(std::string_view what) const {
    return fail(Reason::BadRequest, fmt::format("line {}: {}", line_, what));
  }

  void skip_comment() {
    while (!at_end() && next() != '\n') {
    }
  }

  Status read_section() {
    std::string base;
    for (;;) {
      if (peek() == '\n') return bad("a section's head without an end");
      const char c = next();
      if (c == ']') break;
      if (is_blank(c)) return read_subsection(std::move(base));
      if (!is_key_char(c) && c != '.') return bad("a section's name");
      base += to_lower(c);
    }
    const std::size_t dot = base.find('.');
    section_ = base.substr(0, dot);
    subsection_.reset();
    if (dot != std::string::npos) subsection_ = base.substr(dot + 1);
    return {};
  }

  Status read_subsection(std::string base) {
    section_ = std::move(base);
    std::string subsection;
    while (is_blank(peek())) next();
    if (peek() != '"') return bad("a subsection without quotes");
    next();
    while (peek() != '"') {
      if (peek() == '\\') next();
      if (peek() == '\n') return bad("a subsection without an end");
      subsection += next();
    }
    subsection_ = std::move(subsection);
    next();
    if (peek() != ']') return bad("a section's head without an end");
    next();
    return {};
  }

  Status read_entry(char first) {
    GitConfigEntry entry{section_, subsection_, std::string(1, to_lower(first)), std::nullopt, line_};
    while (is_key_char(peek())) entry.name += to_lower(next());
    while (peek() == ' ' || peek() == '\t') next();
    if (peek() != '\n') {
      if (next() != '=') return bad("a name without '='");
      auto value = read_value();
      if (!value) return fail(std::move(value));
      entry.value = std::move(*value);
    }
    entries_.push_back(std::move(entry));
    return {};
  }

  Result<std::string> read_value() {
    std::string value;
    std::string blanks;  // they count only when something follows
    bool quoted = false;
    for (;;) {
      const char c = peek();
      if (c == '\n') {
        if (quoted) return bad("a quote without an end");
        next();
        return value;
      }
      next();
      if (is_blank(c) && !quoted) {
        if (!value.empty()) blanks += c;
      } else if ((c == ';' || c == '#') && !quoted) {
        skip_comment();
        return value;
      } else if (c == '"') {
        quoted = !quoted;
      } else {
        value += std::exchange(blanks, {});
        if (c != '\\') {
          value += c;
        } else if (auto done = read_escape(value); !done) {
          return fail(std::move(done));
        }
      }
    }
  }

  Status read_escape(std::string& value) {
    switch (next()) {
      case '\n':
        return {};
      case 't':
        value += '\t';
        return {};
      case 'b':
        value += '\b';
        return {};
      case 'n':
        value += '\n';
        return {};
      case '\\':
        value += '\\';
        return {};
      case '"':
        value += '"';
        return {};
      default:
        return bad("an unknown escape");
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::string section_;
  std::optional<std::string> subsection_;
  std::vector<GitConfigEntry> entries_;
};

}  // namespace

std::string GitConfigEntry::key() const {
  if (section.empty()) return name;  // before any section, which git reads too
  return subsection ? section + "." + *subsection + "." + name : section + "." + name;
}

std::string git_quoted(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return {};
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

Result<std::vector<GitConfigEntry>> parse_git_config(std::string_view text) {
  return Reader(text).read();
}

}  // namespace sallyport::sandbox
