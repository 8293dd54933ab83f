#include "policy/rule.h"

namespace sallyport::policy {

std::string_view name(Access access) {
  switch (access) {
    case Access::Fetch:
      return "fetch";
    case Access::Push:
      return "push";
  }
  return "";
}

std::string RuleSource::str() const {
  return line == 0 ? file : file + ":" + std::to_string(line);
}

std::string_view name(Scheme scheme) {
  switch (scheme) {
    case Scheme::Https:
      return "https";
    case Scheme::Http:
      return "http";
  }
  return "";
}

std::string_view name(TlsMode mode) {
  switch (mode) {
    case TlsMode::Inspect:
      return "inspect";
    case TlsMode::Splice:
      return "splice";
  }
  return "";
}

}  // namespace sallyport::policy
