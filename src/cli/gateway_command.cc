#include "cli/gateway_command.h"

#include <fmt/core.h>

#include <boost/json.hpp>

#include "cli/daemon_link.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;

int answer(const GatewayStatusOptions& options, bool ready, const std::string& version,
           const std::string& detail) {
  if (options.format == Format::Json) {
    const json::object object{{"ready", ready}, {"version", version}, {"detail", detail}};
    fmt::print("{}\n", json::serialize(object));
  } else if (ready) {
    fmt::print("ready: sallyportd {}\n", version);
  } else {
    fmt::print(stderr, "sallyport: {}\n", detail);
  }
  return ready ? kExitOk : kExitNo;
}

}  // namespace

int gateway_status(const GatewayStatusOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  const auto version = daemon->call({.method = "GET", .target = "/v1/version"});
  if (!version) return answer(options, false, "", version.error().detail);
  const json::object* object = version->if_object();
  const std::string number = object != nullptr ? control::text_of(*object, "version") : "";
  const auto ready = daemon->text({.method = "GET", .target = "/readyz"});
  return answer(options, ready.has_value(), number, ready ? "" : ready.error().detail);
}

}  // namespace sallyport::cli
