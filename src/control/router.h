// Which handler a call belongs to. Pure: a table of methods and patterns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/api_error.h"

namespace sallyport::control {

// Of what takes the place of "{id}" in a pattern.
inline constexpr std::size_t kMaxParameterBytes = 128;

struct RouteName {
  std::string method;
  std::string pattern;  // "/v1/sessions/{id}/stop"; a "{...}" is one whole segment
};

using PathParameters = std::map<std::string, std::string>;

// The parameters if `path` fits; of segments that are not empty, and have at most kMaxParameterBytes.
std::optional<PathParameters> match_path(std::string_view pattern, std::string_view path);

struct RouteMatch {
  std::size_t index;
  PathParameters parameters;
};

// 404 when no pattern fits, 405 when one does and its method is another. The table's first fit wins.
ApiResult<RouteMatch> find_route(const std::vector<RouteName>& table, std::string_view method,
                                 std::string_view path);

}  // namespace sallyport::control
