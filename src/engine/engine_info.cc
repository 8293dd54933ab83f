#include "engine/engine_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "engine/fields.h"

namespace sallyport::engine {
namespace {

std::unexpected<Error> makes_no_sense(std::string_view call, std::string_view problem) {
  return fail(Reason::EngineRefused,
              fmt::format("the container engine's answer to {} makes no sense: {}", call, problem));
}

std::string name_of(EngineKind kind) {
  return kind == EngineKind::Podman ? "Podman" : "Docker";
}

EngineKind kind_from(Fields& version) {
  for (Fields component : version.objects("Components")) {
    if (component.text_or_empty("Name").starts_with("Podman")) return EngineKind::Podman;
  }
  return EngineKind::Docker;
}

}  // namespace

std::string ApiVersion::text() const {
  return fmt::format("{}.{}", major, minor);
}

std::optional<ApiVersion> parse_api_version(std::string_view text) {
  constexpr std::uint64_t kLargest = 9999;
  const auto parts = split(text, '.');
  if (parts.size() != 2) return std::nullopt;
  const auto major = parse_decimal(parts[0], kLargest);
  const auto minor = parse_decimal(parts[1], kLargest);
  if (!major || !minor) return std::nullopt;
  return ApiVersion{static_cast<unsigned>(*major), static_cast<unsigned>(*minor)};
}

Result<EngineInfo> read_version(std::string_view text) {
  auto document = parse_json(text, "GET /version");
  if (!document) return fail(std::move(document));
  std::string problem;
  Fields fields(*document, problem);
  EngineInfo info;
  info.version = fields.text("Version");
  info.kind = kind_from(fields);
  const auto newest = parse_api_version(fields.text("ApiVersion"));
  const std::string lowest = fields.text_or_empty("MinAPIVersion");
  const auto oldest = lowest.empty() ? kOldestApi : parse_api_version(lowest);
  if (!problem.empty()) return makes_no_sense("GET /version", problem);
  if (!newest || !oldest) return makes_no_sense("GET /version", "its API's version is none");
  if (*newest < kOldestApi || *oldest > kNewestApi) {
    return fail(
        Reason::EngineRefused,
        fmt::format("{} {} speaks version {} to {} of the engine's API, Sallyport {} to {}: update {}",
                    name_of(info.kind), escaped(info.version), oldest->text(), newest->text(),
                    kOldestApi.text(), kNewestApi.text(),
                    *newest < kOldestApi ? name_of(info.kind) : "Sallyport"));
  }
  info.api = std::min(*newest, kNewestApi);
  return info;
}

Status read_info(std::string_view text, EngineInfo& into) {
  auto document = parse_json(text, "GET /info");
  if (!document) return fail(std::move(document));
  std::string problem;
  Fields fields(*document, problem);
  into.id = fields.text_or_empty("ID");
  into.storage = fields.text("Driver");
  into.data_folder = fields.text_or_empty("DockerRootDir");
  into.cgroups = fields.text("CgroupVersion") == "1" ? CgroupVersion::One : CgroupVersion::Two;
  into.live_restore = fields.flag_or_false("LiveRestoreEnabled");
  into.default_runtime = fields.text_or_empty("DefaultRuntime");
  for (const std::string& option : fields.texts("SecurityOptions")) {
    // "name=seccomp,profile=default"
    const std::string_view name = std::string_view(option).substr(0, option.find(','));
    if (name == "name=seccomp") into.seccomp = true;
    if (name == "name=apparmor") into.apparmor = true;
    if (name == "name=userns") into.user_namespaces = true;
    if (name == "name=rootless") into.privilege = Privilege::Rootless;
  }
  // Podman 4.3 says it here alone.
  if (fields.flag_or_false("Rootless")) into.privilege = Privilege::Rootless;
  if (problem.empty()) return {};
  return makes_no_sense("GET /info", problem);
}

}  // namespace sallyport::engine
