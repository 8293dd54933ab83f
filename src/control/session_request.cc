#include "control/session_request.h"

#include <signal.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "control/json_reader.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kMaxCommandWords = 65'536;
constexpr std::int64_t kMaxPids = 4'194'304;  // the kernel's own limit

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

// "2" or "1.5", as billionths.
std::optional<std::int64_t> parse_cpus(std::string_view text) {
  constexpr std::size_t kFractionDigits = 3;
  constexpr std::uint64_t kMaxCpus = 65'536;
  const std::size_t point = text.find('.');
  std::string fraction(point == std::string_view::npos ? "" : text.substr(point + 1));
  if (fraction.size() > kFractionDigits || (point != std::string_view::npos && fraction.empty()))
    return std::nullopt;
  fraction.resize(kFractionDigits, '0');
  const auto whole = parse_decimal(text.substr(0, point), kMaxCpus);
  const auto thousandths = parse_decimal(fraction, 999);
  if (!whole || !thousandths || *whole + *thousandths == 0) return std::nullopt;
  return static_cast<std::int64_t>((*whole * 1000 + *thousandths) * 1'000'000);
}

container::Limits limits_of(JsonReader& reader, const std::string& image) {
  container::Limits limits;
  limits.memory_bytes = static_cast<std::int64_t>(reader.size("memory").value_or(0));
  limits.pids = reader.integer("pids", 1, kMaxPids).value_or(0);
  if (const auto cpus = reader.text("cpus")) {
    const auto number = parse_cpus(*cpus);
    if (!number) reader.complain("cpus", "must be a number of processors like \"2\" or \"1.5\"");
    limits.nano_cpus = number.value_or(0);
  }
  const bool any = limits.memory_bytes != 0 || limits.pids != 0 || limits.nano_cpus != 0;
  if (any && image.empty()) reader.complain("image", "must be named with memory, cpus or pids");
  return limits;
}

std::vector<std::string> words_of(JsonReader& reader, std::string_view key) {
  return reader.texts(key).value_or(std::vector<std::string>{});
}

// What is the daemon's, whatever is asked for.
void add_places(session::Request& request, const session::Places& places) {
  request.sources.config_path = places.config;
  request.sources.config = config::Presence::Usual;
  request.audit_path = places.audit();
  request.state_folder = places.state;
  request.daemon_folders = {places.trust(), places.runtime};
}

void read_lifetime(JsonReader& reader, Lifetime& lifetime) {
  lifetime.ttl = lifetime_of(reader, "ttl");
  lifetime.idle = lifetime_of(reader, "idle");
}

void read_sandbox(JsonReader& reader, session::Request& request) {
  reader.require("workspace");
  request.working_directory = path_of(reader, "workspace", "");
  reader.require("home");
  request.home = path_of(reader, "home", "");
  request.mounts = words_of(reader, "mounts");
  request.environment = words_of(reader, "environment");
  request.extra_environment = words_of(reader, "set_environment");
  request.image = reader.text("image").value_or("");
  request.limits = limits_of(reader, request.image);
  request.private_git = reader.flag("private_git").value_or(false);
}

}  // namespace

Result<NewSession> read_new_session(const boost::json::value& body, const session::Places& places) {
  using config::Presence;
  JsonReader reader("session", body);
  NewSession result;
  session::Request& request = result.request;
  result.name = reader.text("name").value_or("");
  request.adopted = reader.text("container").value_or("");
  if (request.adopted.empty()) {
    read_sandbox(reader, request);
  } else {
    reader.require("policy");
  }
  read_lifetime(reader, result.lifetime);
  if (const auto uses = reader.integer("max_uses", 0, INT64_MAX)) {
    request.max_uses = static_cast<std::uint64_t>(*uses);
  }
  request.sources.git_options = words_of(reader, "git");
  request.sources.policy_path = path_of(reader, "policy", "");
  request.sources.policy = request.sources.policy_path.empty() ? Presence::Usual : Presence::Named;
  if (request.sources.policy_path.empty()) {
    request.sources.policy_path = request.working_directory + "/sallyport.toml";
  }
  request.sources.trust_folder = path_of(reader, "trust", places.trust());
  add_places(request, places);
  if (auto status = reader.finish(); !status) return fail(std::move(status));
  return result;
}

NewSession session_for_container(const std::string& container, const std::string& name,
                                 const std::string& policy, const session::Places& places) {
  NewSession result;
  result.name = name;
  result.request.adopted = container;
  result.request.sources.policy_path = policy;
  result.request.sources.policy = config::Presence::Named;
  result.request.sources.trust_folder = places.trust();
  add_places(result.request, places);
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
