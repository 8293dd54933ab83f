#include "container/sealed.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>

#include "base/text.h"

namespace sallyport::container {
namespace {

// The value behind "Name:".
std::string_view value_of(std::string_view status, std::string_view name) {
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return trimmed(line.substr(name.size() + 1));
    }
  }
  return {};
}

struct MountPoint {
  bool read_only = false;
};

// proc(5): "36 35 98:0 /root /place ro,noatime ..."; the last one at a place is what is seen there.
std::map<std::string_view, MountPoint> mount_points(std::string_view mounts) {
  constexpr std::size_t kPlace = 4;
  constexpr std::size_t kOptions = 5;
  std::map<std::string_view, MountPoint> points;
  for (const std::string_view line : split(mounts, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() <= kOptions) continue;
    const auto options = split(words[kOptions], ',');
    points[words[kPlace]].read_only = std::ranges::find(options, "ro") != options.end();
  }
  return points;
}

bool is_on_host(std::string_view path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<std::string> flaws_of_process(std::string_view status, std::string_view mounts,
                                          bool (*on_host)(std::string_view path)) {
  std::vector<std::string> problems;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    const std::string_view value = value_of(status, set);
    if (!value.empty() && value.find_first_not_of('0') == std::string_view::npos) continue;
    problems.push_back(fmt::format("its process has {} {}: add `cap_drop: [ALL]`", set, escaped(value)));
  }
  if (value_of(status, "NoNewPrivs") != "1") problems.emplace_back("its process may gain privileges");
  if (value_of(status, "Seccomp") != "2") problems.emplace_back("its process has no filter of system calls");
  const auto points = mount_points(mounts);
  const auto uncovered = [&](std::string_view path, bool read_only) {
    if (!on_host(path)) return;
    const auto point = points.find(path);
    if (point != points.end() && (point->second.read_only || !read_only)) return;
    problems.push_back(
        fmt::format("{} is open in it: remove \"unmask=...\" from `security_opt:`", escaped(path)));
  };
  for (const std::string_view path : engine::kMaskedPaths) uncovered(path, false);
  for (const std::string_view path : engine::kReadonlyPaths) uncovered(path, true);
  return problems;
}

std::vector<std::string> flaws(const engine::ContainerState& container, const engine::Demands& demands) {
  auto flaws = engine::problems(container, demands);
  if (demands.engine != engine::EngineKind::Podman) return flaws;
  const std::string process = fmt::format("/proc/{}/", container.pid);
  std::ranges::move(
      flaws_of_process(content_of(process + "status"), content_of(process + "mountinfo"), is_on_host),
      std::back_inserter(flaws));
  return flaws;
}

}  // namespace sallyport::container
