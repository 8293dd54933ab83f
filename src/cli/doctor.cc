#include "cli/doctor.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <functional>

#include "base/text.h"
#include "cli/daemon_link.h"
#include "cli/paths.h"
#include "cli/report.h"
#include "control/api_error.h"
#include "engine/client.h"
#include "os/event_loop.h"
#include "os/safe_path.h"
#include "session/diagnosis.h"
#include "session/places.h"
#include "session/plan.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;
using session::Diagnosis;
using session::Health;

constexpr std::size_t kMaxLineBytes = 1000;
constexpr int kDetailColumn = 29;

struct Patient {
  Paths paths;
  config::Sources sources;
  DaemonOptions daemon;
  Result<session::Identities> found;  // as whom a sandbox of this folder runs
  session::Identities identities;     // or, where that cannot be, of somebody who is nobody
};

session::Request request_here(const Patient& patient) {
  session::Request request;
  request.command = {"true"};
  request.working_directory = patient.paths.working_directory;
  request.home = patient.paths.home;
  request.sources = patient.sources;
  request.audit_path = patient.paths.audit;
  request.state_folder = ::geteuid() == 0 ? session::system_places().state : patient.paths.state;
  request.environment = own_environment();
  return request;
}

Diagnosis diagnose_operator_file(const Patient& patient) {
  const std::string& path = patient.sources.config_path;
  if (!os::path_exists(path)) {
    return {Health::Missing, "no " + path + ": no credential can be used",
            "Write it when a rule needs a credential: docs/policy.md."};
  }
  const auto file = os::open_private_file(path, ::geteuid());
  if (!file) return {Health::Broken, file.error().detail};
  return {Health::Ok, path};
}

Diagnosis diagnose_here(const Patient& patient) {
  if (!patient.found) return {Health::Broken, patient.found.error().detail};
  const auto plan = session::make_plan(request_here(patient));
  if (!plan) return {Health::Broken, plan.error()};
  if (plan->grant.empty()) {
    return {Health::Missing, "no policy: nothing is reachable from a sandbox here",
            "Write " + patient.sources.policy_path + ", or name a repository: --git HOST/OWNER/REPO."};
  }
  return {Health::Ok, fmt::format("{}: {} rules", patient.sources.policy_path, plan->grant.rules())};
}

Diagnosis diagnose_audit(const Patient& patient) {
  const std::string folder = patient.paths.audit.substr(0, patient.paths.audit.rfind('/'));
  const auto made = os::make_private_folder(folder);
  if (!made) return {Health::Broken, made.error().detail};
  if (::access(folder.c_str(), W_OK) != 0) {
    return {Health::Broken, folder + " cannot be written", "Without an audit log nothing is let through."};
  }
  return {Health::Ok, patient.paths.audit};
}

Diagnosis diagnose_daemon(const Patient& patient) {
  auto daemon = link_to_daemon(patient.daemon);
  if (!daemon) return {Health::Broken, daemon.error().detail};
  const auto ready = daemon->text({.method = "GET", .target = "/readyz"});
  if (ready) return {Health::Ok, "ready at " + daemon->path()};
  if (ready.error().reason != Reason::UpstreamUnreachable) return {Health::Broken, ready.error().detail};
  return {Health::Missing, "none runs at " + daemon->path(),
          "`new` and `exec` need one, `run` does not: sallyport gateway start"};
}

std::vector<std::string> engine_sockets() {
  std::vector<std::string> paths;
  constexpr std::string_view kUnix = "unix://";
  const char* host = std::getenv("DOCKER_HOST");
  if (host != nullptr && std::string_view(host).starts_with(kUnix)) {
    paths.emplace_back(std::string_view(host).substr(kUnix.size()));
  }
  paths.emplace_back("/run/docker.sock");
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') paths.push_back(std::string(runtime) + "/podman/podman.sock");
  paths.emplace_back("/run/podman/podman.sock");
  std::erase_if(paths, [](const std::string& path) { return !os::path_exists(path); });
  return paths;
}

std::string describe(const engine::EngineInfo& info) {
  return fmt::format("{} {}{}, API {}, storage {}, cgroup version {}, {}",
                     info.kind == engine::EngineKind::Docker ? "Docker" : "Podman", escaped(info.version),
                     info.privilege == engine::Privilege::Rootless ? " (rootless)" : "", info.api.text(),
                     escaped(info.storage), info.cgroups == engine::CgroupVersion::One ? 1 : 2,
                     info.seccomp ? "seccomp" : "no seccomp");
}

Diagnosis diagnose_engine_at(const std::string& path) {
  os::EventLoop loop;
  engine::Client client(loop, path);
  Diagnosis diagnosis;
  const engine::Call call = client.negotiate([&](const Result<engine::EngineInfo>& info) {
    loop.stop();
    if (!info) {
      diagnosis = {Health::Broken, info.error().detail};
    } else if (!info->seccomp) {
      diagnosis = {Health::Broken, describe(*info), "Its containers would have no filter of system calls."};
    } else {
      diagnosis = {Health::Ok, describe(*info) + ", at " + path};
    }
  });
  if (auto status = loop.run(); !status) return {Health::Broken, status.error().detail};
  return diagnosis;
}

// The first that can be used, or what is wrong with the first.
Diagnosis diagnose_engine(const Patient&) {
  std::vector<Diagnosis> found;
  for (const std::string& path : engine_sockets()) found.push_back(diagnose_engine_at(path));
  if (found.empty()) {
    return {Health::Missing, "no Docker and no Podman listens here",
            "Sandboxes of `run` and `new` need none."};
  }
  const auto usable =
      std::ranges::find_if(found, [](const Diagnosis& each) { return each.health == Health::Ok; });
  return usable == found.end() ? found.front() : *usable;
}

// Whether `sallyport run` works without it.
enum class Need : std::uint8_t {
  Never,  // broken or not, it does
  Whole,  // missing is fine, broken is not
  Always,
};

struct Check {
  const char* name;
  Need need;
  std::function<Diagnosis(const Patient&)> diagnose;
};

template <class Probe>
auto of_identities(Probe probe) {
  return [probe](const Patient& patient) { return probe(patient.identities); };
}
template <class Probe>
auto of_host(Probe probe) {
  return [probe](const Patient&) { return probe(); };
}

std::vector<Check> checks() {
  return {
      {"programs", Need::Always, of_host(session::diagnose_programs)},
      {"namespaces", Need::Always, of_identities(session::diagnose_namespaces)},
      {"doors", Need::Whole, of_identities(session::diagnose_doors)},
      {"bubblewrap", Need::Always, of_identities(session::diagnose_bubblewrap)},
      {"file watches", Need::Always, of_host(session::diagnose_file_watches)},
      {"limits", Need::Never, of_host(session::diagnose_limits)},
      {"cgroups", Need::Never, of_host(session::diagnose_cgroups)},
      {"authorities", Need::Always, of_host(session::diagnose_authorities)},
      {"a whole session", Need::Always, of_identities(session::diagnose_session)},
      {"audit log", Need::Always, diagnose_audit},
      {"operator's file", Need::Whole, diagnose_operator_file},
      {"policy here", Need::Whole, diagnose_here},
      {"daemon", Need::Never, diagnose_daemon},
      {"container engine", Need::Never, diagnose_engine},
  };
}

const char* name(Health health) {
  switch (health) {
    case Health::Ok:
      return "ok";
    case Health::Missing:
      return "missing";
    case Health::Broken:
      return "broken";
  }
  return "";
}

bool stands_in_the_way(const Check& check, Health health) {
  if (check.need == Need::Always) return health != Health::Ok;
  return check.need == Need::Whole && health == Health::Broken;
}

// A text of several lines, each behind the first one's column.
void print_lines(const std::string& text) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) fmt::print("{:{}}{}\n", "", kDetailColumn, escaped(line, kMaxLineBytes));
  }
}

void print(const Check& check, const Diagnosis& diagnosis) {
  const std::size_t end = diagnosis.detail.find('\n');
  fmt::print("{:<8} {:<19} {}\n", name(diagnosis.health), check.name,
             escaped(std::string_view(diagnosis.detail).substr(0, end), kMaxLineBytes));
  if (end != std::string::npos) print_lines(diagnosis.detail.substr(end + 1));
  print_lines(diagnosis.remedy);
  std::fflush(stdout);  // some take their time
}

json::object to_json(const Check& check, const Diagnosis& diagnosis) {
  return {{"name", check.name},
          {"state", name(diagnosis.health)},
          {"detail", control::shown(diagnosis.detail)},
          {"remedy", control::shown(diagnosis.remedy)},
          {"in_the_way", stands_in_the_way(check, diagnosis.health)}};
}

Result<Patient> examine(const DoctorOptions& options) {
  auto paths = find_paths();
  if (!paths) return fail(std::move(paths));
  struct stat workspace{};
  if (::stat(paths->working_directory.c_str(), &workspace) != 0) {
    return fail_errno(Reason::Internal, paths->working_directory);
  }
  const os::Ids caller{::geteuid(), ::getegid()};
  auto found = session::choose_identities(caller, {workspace.st_uid, workspace.st_gid}, paths->home);
  auto identities =
      found ? found : session::choose_identities(caller, {session::kGateUid, session::kGateUid}, paths->home);
  if (!identities) return fail(std::move(identities));
  config::Sources sources = sources_of(options.files, *paths);
  return Patient{.paths = std::move(*paths),
                 .sources = std::move(sources),
                 .daemon = options.daemon,
                 .found = std::move(found),
                 .identities = std::move(*identities)};
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const auto patient = examine(options);
  if (!patient) return failed(patient.error());
  json::array findings;
  bool works = true;
  for (const Check& check : checks()) {
    const Diagnosis diagnosis = check.diagnose(*patient);
    works = works && !stands_in_the_way(check, diagnosis.health);
    if (options.format == Format::Json) {
      findings.push_back(to_json(check, diagnosis));
    } else {
      print(check, diagnosis);
    }
  }
  if (options.format == Format::Json) {
    print_json(json::object{{"works", works}, {"checks", std::move(findings)}});
  } else {
    fmt::print("{}\n", works ? "`sallyport run` works here." : "`sallyport run` does not work here.");
  }
  return works ? kExitOk : kExitNo;
}

}  // namespace sallyport::cli
