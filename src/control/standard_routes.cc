#include "control/standard_routes.h"

#include <memory>

namespace sallyport::control {
namespace {

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
// Prometheus, "Exposition formats".
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

std::vector<Route> standard_routes(Health health) {
  std::vector<Route> routes;
  routes.push_back({"GET", "/healthz", [](const Call&, Answer answer) { answer.text(200, kPlain, "ok\n"); }});
  routes.push_back(
      {"GET", "/readyz", [why_not = std::move(health.why_not_ready)](const Call&, Answer answer) {
         if (const auto reason = why_not()) {
           return answer.refuse({503, "not_ready", reason->message, reason->hint});
         }
         answer.text(200, kPlain, "ok\n");
       }});
  routes.push_back({"GET", "/metrics", [metrics = std::move(health.metrics)](const Call&, Answer answer) {
                      answer.text(200, kMetricsType, metrics());
                    }});
  routes.push_back({"GET", "/v1/version", [](const Call&, Answer answer) {
                      answer.send(200, {{"version", SALLYPORT_VERSION}, {"api", kApiVersion}});
                    }});
  return routes;
}

Route shutdown_route(ApiAccess access, Shutdown shutdown) {
  const auto handler = [access, shutdown = std::move(shutdown)](const Call& call, Answer answer) {
    if (!access.is_master(call.peer.uid)) {
      return answer.refuse(
          {403, "other_user", "Only root and the daemon's own user may end it, and with it all sessions."});
    }
    // Kept until its connection ends.
    const auto kept = std::make_shared<Answer>(std::move(answer));
    kept->when_gone([kept] {});
    kept->line({{"ending", true}, {"sessions", shutdown.sessions()}});
    shutdown.begin();
  };
  return {.method = "POST", .pattern = "/v1/shutdown", .handler = handler};
}

}  // namespace sallyport::control
