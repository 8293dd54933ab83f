// For tests: tests/data/upstream_answers.txt, whose first lines describe its form.
#pragma once

#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/reason.h"
#include "base/text.h"

namespace sallyport::upstream::test {

enum class Expected : std::uint8_t { Whole, Last, Malformed, Truncated, Closed, CutMalformed, CutTruncated };
enum class PeerEnd : std::uint8_t { Stay, Close, Fin };

// None for what is taken.
inline Reason reason_of(Expected expected) {
  switch (expected) {
    case Expected::Whole:
    case Expected::Last:
      return Reason::None;
    case Expected::Malformed:
    case Expected::CutMalformed:
      return Reason::UpstreamMalformed;
    case Expected::Truncated:
    case Expected::CutTruncated:
      return Reason::UpstreamTruncated;
    case Expected::Closed:
      return Reason::UpstreamClosed;
  }
  std::unreachable();
}

struct AnswerCase {
  Expected expected;
  PeerEnd end;
  std::string name;
  std::string bytes;
};

class AnswersFile {
 public:
  static std::vector<AnswerCase> read(const std::string& path) {
    AnswersFile file;
    std::ifstream in(path);
    std::string line;
    while (std::getline(in, line)) file.add(line);
    if (file.cases_.empty()) throw std::runtime_error("no cases in " + path);
    return std::move(file.cases_);
  }

 private:
  void add(std::string_view line) {
    if (line.empty() || line[0] == '#') return;
    if (line.starts_with("= ")) {
      line.remove_prefix(2);
      const std::string name(take_word(line));
      line.remove_prefix(line.find_first_not_of(' '));
      words_[name] = line;
      return;
    }
    const std::string_view expected = take_word(line);
    const std::string_view end = take_word(line);
    const std::size_t colon = line.find(':');
    std::string_view text = line.substr(colon + 1);
    if (text.starts_with(' ')) text.remove_prefix(1);
    cases_.push_back(
        {kExpected.at(expected), kEnds.at(end), std::string(line.substr(0, colon)), expand(text)});
  }

  static std::string_view take_word(std::string_view& line) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size() + 1);
    return word;
  }

  // Up to the end of `text`, or to the brace that closes it.
  std::string expand(std::string_view& text) const {
    std::string out;
    while (!text.empty() && text[0] != '}') {
      const char c = take(text);
      if (c == '\\') {
        out += escaped_char(text);
      } else if (c == '{') {
        out += braced(text);
      } else {
        out += c;
      }
    }
    return out;
  }

  static char take(std::string_view& text) {
    const char c = text.at(0);
    text.remove_prefix(1);
    return c;
  }

  static char escaped_char(std::string_view& text) {
    switch (const char c = take(text)) {
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case '0':
        return '\0';
      case 'x': {
        const auto high = hex_value(take(text));
        return static_cast<char>(high << 4U | hex_value(take(text)));
      }
      default:
        return c;
    }
  }

  // Behind an open brace: "word}" or "N*text}".
  std::string braced(std::string_view& text) const {
    const std::size_t stop = text.find_first_of("*}");
    const std::string word(text.substr(0, stop));
    const bool repeats = text.at(stop) == '*';
    text.remove_prefix(stop + 1);
    if (!repeats) {
      std::string_view meaning = words_.at(word);
      return expand(meaning);
    }
    const std::string once = expand(text);
    take(text);  // the closing brace
    std::string out;
    for (int i = std::stoi(word); i > 0; --i) out += once;
    return out;
  }

  inline static const std::map<std::string_view, Expected> kExpected{
      {"whole", Expected::Whole},
      {"last", Expected::Last},
      {"malformed", Expected::Malformed},
      {"truncated", Expected::Truncated},
      {"closed", Expected::Closed},
      {"cut-malformed", Expected::CutMalformed},
      {"cut-truncated", Expected::CutTruncated}};
  inline static const std::map<std::string_view, PeerEnd> kEnds{
      {"stay", PeerEnd::Stay}, {"close", PeerEnd::Close}, {"fin", PeerEnd::Fin}};

  std::map<std::string, std::string, std::less<>> words_;
  std::vector<AnswerCase> cases_;
};

inline std::vector<AnswerCase> answers_file() {
  return AnswersFile::read(std::string(SALLYPORT_SOURCE_DIR) + "/tests/data/upstream_answers.txt");
}

}  // namespace sallyport::upstream::test
