// "METHOD SP target", the first byte choosing the host's kind. What was accepted must forward exactly what
// was judged: the target built from the parts is the one that was read, and reads as the same route.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/git_route.h"

using namespace sallyport::policy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const HostKind kind = data[0] % 2 == 0 ? HostKind::GitLab : HostKind::Generic;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return 0;
  const HostName host = *HostName::parse("forge.test");
  const std::string_view target = text.substr(space + 1);

  const auto route = parse_git_route(host, kind, text.substr(0, space), target);
  if (!route) return 0;
  if (route->target() != target || route->method() != text.substr(0, space)) std::abort();
  const auto again = parse_git_route(host, kind, route->method(), route->target());
  if (!again || again->repo.segments != route->repo.segments || again->service != route->service ||
      again->endpoint != route->endpoint || again->dot_git != route->dot_git) {
    std::abort();
  }
  // The repository alone reads as the same one, and a pattern of its own name grants it.
  const auto repo = parse_repo(route->repo.str(), kind);
  if (!repo || repo->segments != route->repo.segments) std::abort();
  const auto pattern = RepoPattern::parse(route->repo.str(), kind);
  if (!pattern || !pattern->matches(*repo)) std::abort();
  return 0;
}
