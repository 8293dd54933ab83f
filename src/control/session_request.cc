#include "control/session_request.h"

#include <signal.h>

#include <array>
#include <filesystem>
#include <utility>

#include "control/json_reader.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kMaxCommandWords = 65'536;

struct NamedSignal {
  std::string_view name;
  int number;
};
constexpr std::array kSignals{
    NamedSignal{"HUP", SIGHUP},   NamedSignal{"INT", SIGINT},   NamedSignal{"QUIT", SIGQUIT},
    NamedSignal{"KILL", SIGKILL}, NamedSignal{"USR1", SIGUSR1}, NamedSignal{"USR2", SIGUSR2},
    NamedSignal{"TERM", SIGTERM}, NamedSignal{"CONT", SIGCONT}, NamedSignal{"TSTP", SIGTSTP},
};

bool is_plain_path(const std::string& path) {
  if (!path.starts_with('/') || (path.size() > 1 && path.ends_with('/'))) return false;
  return std::filesystem::path(path).lexically_normal().string() == path;
}

// An absolute path without "." and "..".
std::string path_of(JsonReader& reader, std::string_view key, std::string otherwise) {
  auto path = reader.text(key);
  if (!path) return otherwise;
  if (!is_plain_path(*path)) reader.complain(key, "must be an absolute path without '.' and '..'");
  return *std::move(path);
}

std::optional<std::chrono::seconds> lifetime_of(JsonReader& reader, std::string_view key) {
  const auto text = reader.text(key);
  if (!text) return std::nullopt;
  const auto time = parse_lifetime(*text);
  if (!time)
    reader.complain(key, "must be a time like \"30s\", \"20min\", \"8h\" or \"7day\", at most 366day");
  return time;
}

std::vector<std::string> words_of(JsonReader& reader, std::string_view key) {
  return reader.texts(key).value_or(std::vector<std::string>{});
}

}  // namespace

Result<NewSession> read_new_session(const boost::json::value& body, const session::Places& places) {
  using config::Presence;
  JsonReader reader("session", body);
  NewSession result;
  session::Request& request = result.request;
  result.name = reader.text("name").value_or("");
  reader.require("workspace");
  request.working_directory = path_of(reader, "workspace", "");
  reader.require("home");
  request.home = path_of(reader, "home", "");
  request.mounts = words_of(reader, "mounts");
  request.environment = words_of(reader, "environment");
  request.extra_environment = words_of(reader, "set_environment");
  request.private_git = reader.flag("private_git").value_or(false);
  result.lifetime.ttl = lifetime_of(reader, "ttl");
  result.lifetime.idle = lifetime_of(reader, "idle");
  request.sources.git_options = words_of(reader, "git");
  request.sources.policy_path = path_of(reader, "policy", "");
  request.sources.policy = request.sources.policy_path.empty() ? Presence::Usual : Presence::Named;
  if (request.sources.policy_path.empty()) {
    request.sources.policy_path = request.working_directory + "/sallyport.toml";
  }
  request.sources.trust_folder = path_of(reader, "trust", places.trust());
  request.sources.config_path = places.config;
  request.sources.config = Presence::Usual;
  request.audit_path = places.audit();
  request.state_folder = places.state;
  request.daemon_folders = {places.trust(), places.runtime};
  if (auto status = reader.finish(); !status) return fail(std::move(status));
  return result;
}

Result<session::Command> read_command(const boost::json::value& body) {
  JsonReader reader("command", body);
  session::Command command;
  reader.require("command");
  command.argv = reader.texts("command", kMaxCommandWords).value_or(std::vector<std::string>{});
  command.environment = words_of(reader, "set_environment");
  command.cwd = path_of(reader, "working_directory", "");
  const bool has_terminal = reader.flag("terminal").value_or(false);
  command.terminal = has_terminal ? sandbox::Terminal::Stdin : sandbox::Terminal::None;
  if (auto status = reader.finish(); !status) return fail(std::move(status));
  return command;
}

Result<int> read_signal(const boost::json::value& body) {
  JsonReader reader("signal", body);
  reader.require("signal");
  const std::string name = reader.text("signal").value_or("");
  int number = 0;
  for (const NamedSignal& signal : kSignals) {
    if (signal.name == name) number = signal.number;
  }
  if (number == 0) reader.complain("signal", "must be HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT or TSTP");
  if (auto status = reader.finish(); !status) return fail(std::move(status));
  return number;
}

}  // namespace sallyport::control
