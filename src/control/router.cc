#include "control/router.h"

#include "base/text.h"

namespace sallyport::control {

std::optional<PathParameters> match_path(std::string_view pattern, std::string_view path) {
  const auto names = split(pattern, '/');
  const auto segments = split(path, '/');
  if (names.size() != segments.size()) return std::nullopt;
  PathParameters parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    if (name.starts_with('{') && name.ends_with('}')) {
      if (segments[i].empty() || segments[i].size() > kMaxParameterBytes) return std::nullopt;
      parameters.emplace(name.substr(1, name.size() - 2), segments[i]);
    } else if (name != segments[i]) {
      return std::nullopt;
    }
  }
  return parameters;
}

ApiResult<RouteMatch> find_route(const std::vector<RouteName>& table, std::string_view method,
                                 std::string_view path) {
  std::string methods;
  for (std::size_t i = 0; i < table.size(); ++i) {
    auto parameters = match_path(table[i].pattern, path);
    if (!parameters) continue;
    if (table[i].method == method) return RouteMatch{i, std::move(*parameters)};
    methods += (methods.empty() ? "" : ", ") + table[i].method;
  }
  const std::string shown = escaped(path);
  if (methods.empty()) {
    return refuse(404, "no_such_call", "There is no call " + shown + ".", "docs/control-api.md lists them.");
  }
  return refuse(405, "method_not_allowed", shown + " is asked with " + methods + ".");
}

}  // namespace sallyport::control
