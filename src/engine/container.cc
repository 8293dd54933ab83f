#include "engine/container.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sallyport::engine {
namespace {

namespace json = boost::json;

json::array list(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

json::object members(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [name, text] : texts) object.emplace(name, text);
  return object;
}

void add_text(json::object& to, const char* name, const std::string& text) {
  if (!text.empty()) to.emplace(name, text);
}

void add_list(json::object& to, const char* name, const std::vector<std::string>& texts) {
  if (!texts.empty()) to.emplace(name, list(texts));
}

void add_number(json::object& to, const char* name, std::int64_t number) {
  if (number != 0) to.emplace(name, number);
}

json::object mount_object(const BindMount& mount) {
  return {{"Type", "bind"},
          {"Source", mount.source},
          {"Target", mount.target},
          {"ReadOnly", mount.access == MountAccess::ReadOnly},
          {"BindOptions", {{"Propagation", "private"}}}};
}

json::object host_config(const ContainerSpec& spec) {
  json::array security{"no-new-privileges"};
  if (!spec.seccomp_profile.empty()) security.emplace_back("seccomp=" + spec.seccomp_profile);
  json::object config{
      {"NetworkMode", spec.join_network_of.empty() ? "none" : kJoinsContainer + spec.join_network_of},
      {"CapDrop", {"ALL"}},
      {"SecurityOpt", std::move(security)},
      {"ReadonlyRootfs", spec.root == RootFolder::ReadOnly},
      {"IpcMode", "private"},
      {"RestartPolicy", {{"Name", "no"}}},
      {"Init", spec.init},
  };
  if (!spec.tmpfs.empty()) config.emplace("Tmpfs", members(spec.tmpfs));
  add_list(config, "Dns", spec.name_servers);
  add_text(config, "UsernsMode", spec.user_namespace);
  json::array mounts;
  for (const BindMount& mount : spec.mounts) mounts.emplace_back(mount_object(mount));
  if (!mounts.empty()) config.emplace("Mounts", std::move(mounts));
  add_number(config, "PidsLimit", spec.pids);
  add_number(config, "Memory", spec.memory_bytes);
  add_number(config, "MemorySwap", spec.memory_bytes);
  add_number(config, "NanoCpus", spec.nano_cpus);
  add_number(config, "ShmSize", spec.shm_bytes);
  json::array ulimits;
  for (const Ulimit& limit : spec.ulimits) {
    ulimits.emplace_back(json::object{{"Name", limit.name}, {"Soft", limit.soft}, {"Hard", limit.hard}});
  }
  if (!ulimits.empty()) config.emplace("Ulimits", std::move(ulimits));
  return config;
}

}  // namespace

std::string create_body(const ContainerSpec& spec) {
  json::object body{
      {"Image", spec.image},
      {"Tty", spec.terminal},
      {"OpenStdin", spec.keep_input},
      // Each would be the image's else: a command that the engine runs beside ours, and a signal that ours
      // does not hear.
      {"Healthcheck", {{"Test", json::array{"NONE"}}}},
      {"StopSignal", "SIGTERM"},
      {"HostConfig", host_config(spec)},
  };
  add_list(body, "Entrypoint", spec.entrypoint);
  add_list(body, "Cmd", spec.command);
  add_list(body, "Env", spec.environment);
  add_text(body, "User", spec.user);
  add_text(body, "WorkingDir", spec.working_directory);
  add_text(body, "Hostname", spec.hostname);
  if (!spec.labels.empty()) body.emplace("Labels", members(spec.labels));
  return json::serialize(body);
}

}  // namespace sallyport::engine
