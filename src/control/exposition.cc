#include "control/exposition.h"

namespace sallyport::control {
namespace {

// Prometheus, "Text-based format": in HELP backslash and line feed, in a label's value the quote too.
std::string escaped_text(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (special.contains(c)) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string_view word(Exposition::Type type) {
  switch (type) {
    case Exposition::Type::Counter:
      return "counter";
    case Exposition::Type::Gauge:
      return "gauge";
    case Exposition::Type::Histogram:
      return "histogram";
  }
  return "";
}

}  // namespace

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  text_ += "# HELP " + name_ + " " + escaped_text(help, "\\") + "\n";
  text_ += "# TYPE " + name_ + " " + std::string(word(type)) + "\n";
}

void Exposition::sample(std::uint64_t value, Labels labels) {
  sample("", std::to_string(value), labels);
}

void Exposition::sample(std::string_view suffix, std::string_view value, Labels labels) {
  text_.append(name_).append(suffix);
  char before = '{';
  for (const auto& [label, text] : labels) {
    text_ += before;
    text_.append(label).append("=\"").append(escaped_text(text, "\\\"")).append("\"");
    before = ',';
  }
  if (labels.size() > 0) text_ += '}';
  text_.append(" ").append(value).append("\n");
}

}  // namespace sallyport::control
