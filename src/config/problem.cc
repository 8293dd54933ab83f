#include "config/config.h"

namespace sallyport::config {

std::string Problem::str() const {
  std::string text = place.file;
  if (place.line > 0) text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  text += ": " + message;
  if (!remedy.empty()) text += "; " + remedy;
  return text;
}

}  // namespace sallyport::config
