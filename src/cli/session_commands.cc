#include "cli/session_commands.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.h"
#include "cli/daemon_link.h"
#include "cli/paths.h"
#include "cli/report.h"
#include "cli/trust_command.h"
#include "sandbox/profile.h"
#include "session/places.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;
using control::text_of;

std::function<void(const std::string&)> notices(Verbosity verbosity) {
  return [verbosity](const std::string& text) {
    if (verbosity != Verbosity::Quiet) fmt::print(stderr, "sallyport: {}\n", text);
  };
}

json::array to_json(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

// What a sandbox would be given of ours; not the rest, which the daemon would keep.
std::vector<std::string> environment_to_send() {
  std::vector<std::string> variables = own_environment();
  std::erase_if(variables, [](const std::string& line) {
    return !sandbox::counts(std::string_view(line).substr(0, line.find('=')));
  });
  return variables;
}

// NAME alone means our own value, which the daemon does not have.
std::vector<std::string> with_values(const std::vector<std::string>& variables, Verbosity verbosity) {
  std::vector<std::string> lines;
  for (const std::string& variable : variables) {
    const char* value = variable.contains('=') ? nullptr : ::getenv(variable.c_str());
    if (variable.contains('=')) {
      lines.push_back(variable);
    } else if (value != nullptr) {
      lines.push_back(variable + "=" + value);
    } else {
      notices(verbosity)("--env " + variable + ": not set here, so not set inside");
    }
  }
  return lines;
}

// `folder`: where the policy is looked for when none is named.
config::Sources sources_of_daemon(const std::optional<std::string>& policy,
                                  const std::vector<std::string>& git, const Paths& paths,
                                  const std::string& folder) {
  config::Sources sources = sources_of({.policy = policy, .config = {}}, paths);
  if (!policy) sources.policy_path = folder + "/sallyport.toml";
  if (::geteuid() == 0) sources.config_path = session::system_places().config;
  sources.git_options = git;
  return sources;
}

json::object request_of(const NewOptions& options, const Paths& paths, const std::string& workspace,
                        const config::Sources& sources) {
  std::vector<std::string> mounts;
  for (const std::string& mount : options.mounts) mounts.push_back(absolute(mount, paths));
  json::object body{{"workspace", workspace},
                    {"home", paths.home},
                    {"trust", paths.trust},
                    {"mounts", to_json(mounts)},
                    {"git", to_json(options.git)},
                    {"environment", to_json(environment_to_send())},
                    {"set_environment", to_json(with_values(options.environment, options.verbosity))},
                    {"private_git", options.kind == Workspace::PrivateClone}};
  if (!options.name.empty()) body["name"] = options.name;
  if (options.image) body["image"] = *options.image;
  if (options.memory) body["memory"] = *options.memory;
  if (options.cpus) body["cpus"] = *options.cpus;
  if (options.pids) body["pids"] = *options.pids;
  if (options.ttl) body["ttl"] = *options.ttl;
  if (options.idle) body["idle"] = *options.idle;
  if (options.max_uses) body["max_uses"] = *options.max_uses;
  if (options.policy) body["policy"] = sources.policy_path;
  return body;
}

void print_row(const json::object& session) {
  fmt::print("{:<24} {:<9} {}  {}\n", text_of(session, "name"), text_of(session, "state"),
             text_of(session, "id").substr(0, 12), text_of(session, "workspace"));
}

// Makes it and waits until it can be used.
template <class Options>
int create(const Options& options, const json::object& body) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  const auto session =
      follow(*daemon, {.method = "POST", .target = "/v1/sessions", .body = body}, notices(options.verbosity));
  if (!session) return failed(session.error());
  fmt::print("{}\n", options.format == Format::Json ? json::serialize(*session) : text_of(*session, "name"));
  return kExitOk;
}

}  // namespace

int new_session(const NewOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  const std::string workspace =
      options.workspace ? absolute(*options.workspace, *paths) : paths->working_directory;
  const config::Sources sources = sources_of_daemon(options.policy, options.git, *paths, workspace);
  if (!consent_before_run(sources)) return kExitFailed;
  return create(options, request_of(options, *paths, workspace, sources));
}

int adopt_container(const AdoptOptions& options) {
  const auto paths = find_paths();
  if (!paths) return failed(paths.error());
  const config::Sources sources =
      sources_of_daemon(options.policy, options.git, *paths, paths->working_directory);
  if (!consent_before_run(sources)) return kExitFailed;
  json::object body{{"name", options.name.empty() ? options.container : options.name},
                    {"container", options.container},
                    {"policy", sources.policy_path},
                    {"trust", paths->trust},
                    {"git", to_json(options.git)}};
  if (options.ttl) body["ttl"] = *options.ttl;
  if (options.idle) body["idle"] = *options.idle;
  return create(options, body);
}

int list_sessions(const ListOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  const auto answer = daemon->call({.method = "GET", .target = "/v1/sessions"});
  if (!answer) return failed(answer.error());
  if (options.format == Format::Json) {
    print_json(*answer);
    return kExitOk;
  }
  const json::array& sessions = answer->at("sessions").as_array();
  if (!sessions.empty()) fmt::print("{:<24} {:<9} {:<12}  {}\n", "NAME", "STATE", "ID", "WORKSPACE");
  for (const json::value& session : sessions) print_row(session.as_object());
  return kExitOk;
}

int show_session(const StatusOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  auto path = session_path(options.session);
  if (!path) return failed(path.error());
  const auto answer = daemon->call({.method = "GET", .target = *path});
  if (!answer) return failed(answer.error());
  if (options.format == Format::Json) {
    print_json(*answer);
    return kExitOk;
  }
  const json::object& session = answer->as_object();
  for (const char* field :
       {"name", "state", "id", "image", "workspace", "policy", "started", "summary", "audit_log"}) {
    fmt::print("{:<10} {}\n", field, text_of(session, field));
  }
  fmt::print("{:<10} {}\n", "commands", json::serialize(session.at("commands")));
  for (const json::value& notice : session.at("notices").as_array()) {
    fmt::print("{:<10} {}\n", "notice", std::string(notice.as_string()));
  }
  return kExitOk;
}

int act_on_sessions(const SessionOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  int exit_code = kExitOk;
  for (const std::string& name : options.sessions) {
    const bool destroys = options.action == SessionAction::Destroy;
    const char* rest = options.action == SessionAction::Start  ? "/start"
                       : options.action == SessionAction::Stop ? "/stop"
                                                               : "";
    auto path = session_path(name, rest);
    const auto session = path ? follow(*daemon, {.method = destroys ? "DELETE" : "POST", .target = *path},
                                       notices(options.verbosity))
                              : Result<json::object>(fail(std::move(path)));
    if (!session) exit_code = failed(session.error());
  }
  return exit_code;
}

}  // namespace sallyport::cli
