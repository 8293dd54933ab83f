// What the room's tests share.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "config/config.h"

namespace sallyport::config {

inline std::string read_for_test(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::filesystem::path source_path(const std::string& path) {
  return std::filesystem::path(SALLYPORT_SOURCE_DIR) / path;
}

inline std::string joined(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems) text += problem.str() + "\n";
  return text;
}

// tests/data/policies/good_operator/example.toml: defines the credentials github and forge-bot, and
// forge.example.com as a GitLab.
inline OperatorConfig example_operator_config() {
  const std::string text = read_for_test(source_path("tests/data/policies/good_operator/example.toml"));
  return parse_operator_config(text, "config.toml", "/home/me").value();
}

}  // namespace sallyport::config
