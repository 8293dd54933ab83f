#include "cli/report.h"

#include <fmt/core.h>

#include <boost/json/serialize.hpp>

#include "cli/command_line.h"

namespace sallyport::cli {

int failed(const Error& error) {
  fmt::print(stderr, "sallyport: {}\n", error.detail);
  return kExitFailed;
}

void print_json(const boost::json::value& value) {
  fmt::print("{}\n", boost::json::serialize(value));
}

}  // namespace sallyport::cli
