// Prometheus' text format, version 0.0.4: families of samples, each with its HELP and TYPE.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sallyport::control {

class Exposition {
 public:
  enum class Type : std::uint8_t { Counter, Gauge, Histogram };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // The samples that follow are of this one. Names are ours: they are not checked.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(std::uint64_t value, Labels labels = {});
  // Of a histogram: "_bucket", "_sum", "_count". `value` is a number, as text.
  void sample(std::string_view suffix, std::string_view value, Labels labels = {});

  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace sallyport::control
