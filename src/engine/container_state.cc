#include "engine/container_state.h"

#include <fmt/format.h>

#include "engine/fields.h"

namespace sallyport::engine {
namespace {

HostConfig read_host_config(Fields from) {
  HostConfig host;
  from.expect({"CapAdd", "CapDrop", "SecurityOpt", "Devices", "Binds", "VolumesFrom", "GroupAdd"});
  host.privileged = from.flag("Privileged");
  host.cap_add = from.texts("CapAdd");
  host.cap_drop = from.texts("CapDrop");
  host.security_opt = from.texts("SecurityOpt");
  host.network_mode = from.text("NetworkMode");
  host.pid_mode = from.text("PidMode");
  host.ipc_mode = from.text("IpcMode");
  host.userns_mode = from.text("UsernsMode");
  host.uts_mode = from.text("UTSMode");
  host.cgroupns_mode = from.text_or_empty("CgroupnsMode");
  for (Fields device : from.objects("Devices")) {
    host.devices.push_back({device.text("PathOnHost"), device.text("PathInContainer")});
  }
  for (Fields request : from.objects("DeviceRequests")) {
    host.device_requests.push_back(request.text_or_empty("Driver"));
  }
  host.device_cgroup_rules = from.texts("DeviceCgroupRules");
  host.binds = from.texts("Binds");
  host.readonly_root = from.flag("ReadonlyRootfs");
  host.sysctls = from.text_map("Sysctls");
  host.volumes_from = from.texts("VolumesFrom");
  host.runtime = from.text_or_empty("Runtime");
  host.masked_paths = from.optional_texts("MaskedPaths");
  host.readonly_paths = from.optional_texts("ReadonlyPaths");
  host.group_add = from.texts("GroupAdd");
  host.init = from.flag_or_false("Init");
  return host;
}

MountState read_mount(Fields from) {
  MountState mount;
  mount.type = from.text("Type");
  mount.name = from.text_or_empty("Name");
  mount.driver = from.text_or_empty("Driver");
  mount.source = from.text_or_empty("Source");
  mount.target = from.text("Destination");
  mount.propagation = from.text_or_empty("Propagation");
  mount.writable = from.flag("RW");
  return mount;
}

void read_process(Fields from, ContainerState& into) {
  into.status = from.text("Status");
  into.running = from.flag("Running");
  into.pid = from.number("Pid");
  into.started_at = from.text("StartedAt");
  into.exit_code = from.number("ExitCode");
  into.out_of_memory = from.flag_or_false("OOMKilled");
}

}  // namespace

Result<ContainerState> read_container_state(std::string_view text) {
  auto document = parse_json(text, "inspect");
  if (!document) return fail(std::move(document));
  std::string problem;
  Fields all(*document, problem);
  ContainerState state;
  state.id = all.text("Id");
  state.name = all.text("Name");
  if (state.name.starts_with('/')) state.name.erase(0, 1);
  state.image = all.text("Image");
  read_process(all.object("State"), state);
  Fields config = all.object("Config");
  state.user = config.text_or_empty("User");
  state.terminal = config.flag_or_false("Tty");
  state.labels = config.text_map("Labels");
  state.host = read_host_config(all.object("HostConfig"));
  for (const Fields& mount : all.objects("Mounts")) state.mounts.push_back(read_mount(mount));
  for (const auto& [name, network] : all.object("NetworkSettings").members("Networks")) {
    state.networks.push_back(name);
  }
  if (problem.empty()) return state;
  return fail(Reason::EngineRefused,
              fmt::format("the container engine's answer to inspect makes no sense: {}", problem));
}

}  // namespace sallyport::engine
