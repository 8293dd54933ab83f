#include "upstream/environment.h"

#include <utility>

namespace sallyport::upstream {

Result<Environment> Environment::load(net::Worker& worker, bool system_roots) {
  auto resolver = net::Resolver::make(worker);
  if (!resolver) return fail(std::move(resolver));
  Environment environment{.resolver = *std::move(resolver), .system_roots = {}};
  if (!system_roots) return environment;
  auto roots = net::make_client_context("");
  if (roots) environment.system_roots = *std::move(roots);
  return environment;
}

}  // namespace sallyport::upstream
