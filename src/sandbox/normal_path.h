// Paths in one form, so that they can be compared.
#pragma once

#include <filesystem>
#include <string>

namespace sallyport::sandbox {

// Without ".", "..", doubled and closing slashes, by its letters alone: links are not looked at.
inline std::string normal_path(const std::filesystem::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace sallyport::sandbox
