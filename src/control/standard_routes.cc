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
           return answer.refuse(
               {503, "not_ready", *reason, "It is started again by itself; its log says why it died."});
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

}  // namespace sallyport::control
