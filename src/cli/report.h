// What a command says at its end.
#pragma once

#include <boost/json/value.hpp>

#include "base/result.h"

namespace sallyport::cli {

// Says why on standard error, and is kExitFailed.
int failed(const Error& error);

// One line on standard output.
void print_json(const boost::json::value& value);

}  // namespace sallyport::cli
