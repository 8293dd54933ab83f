#include "base/text.h"
#include "config/config.h"

namespace sallyport::config {

// A path as long as the kernel takes, each byte escaped.
constexpr std::size_t kShownPathBytes = std::size_t{4} * 4096;

std::string Problem::str() const {
  std::string text = escaped(place.file, kShownPathBytes);  // whoever made the file chose its name
  if (place.line > 0) text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  text += ": " + message;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

}  // namespace sallyport::config
