// The words of the command line, as values. Every option and help text is defined in command_line.cc and
// host_options.cc, and nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policy/method.h"

namespace sallyport::cli {

// Exit codes besides the workload's own; they are in `sallyport --help`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitNo = 1;     // `policy check` found problems; `explain`: not allowed; `trust`: not
                                      // trusted; `gateway status`: not ready; `doctor`: `run` would not work
inline constexpr int kExitUsage = 2;  // the command line cannot be read
inline constexpr int kExitFailed = 125;  // Sallyport itself failed

enum class Verbosity { Quiet, Normal, Verbose };
enum class Format { Text, Json };

enum class Workspace { Real, PrivateClone };

struct FileOptions {
  std::optional<std::string> policy;
  std::optional<std::string> config;
};

struct RunOptions {
  FileOptions files;
  std::vector<std::string> git;
  std::vector<std::string> mounts;
  std::vector<std::string> environment;
  std::optional<std::string> audit;
  Workspace workspace = Workspace::Real;
  Verbosity verbosity = Verbosity::Normal;
  std::vector<std::string> command;
};

struct ServeOptions {
  FileOptions files;
  std::optional<std::string> proxy;  // ADDRESS:PORT, as the next three
  std::optional<std::string> tls;
  std::optional<std::string> http;
  std::optional<std::string> dns;
  std::vector<std::string> doors;  // ADDRESS:PORT=URL
  std::optional<std::string> ca_file;
  std::optional<std::string> audit;
  Format format = Format::Text;

  bool has_door() const { return proxy || tls || http || dns || !doors.empty(); }
};

struct CheckOptions {
  FileOptions files;
  Format format = Format::Text;
};

struct ExplainOptions {
  FileOptions files;
  std::string url;
  std::optional<std::string> push;  // HOST/OWNER/REPO, instead of the URL
  std::optional<policy::Method> method;
  Format format = Format::Text;
};

enum class TrustAction { Trust, List, Revoke };
enum class Answer { Ask, Yes };

struct TrustOptions {
  FileOptions files;
  TrustAction action = TrustAction::Trust;
  Answer answer = Answer::Ask;
  Format format = Format::Text;
};

// Of the commands that speak with a daemon.
struct DaemonOptions {
  std::optional<std::string> socket;
};

struct NewOptions {
  DaemonOptions daemon;
  std::string name;
  std::optional<std::string> workspace;
  std::optional<std::string> policy;
  std::vector<std::string> git;
  std::vector<std::string> mounts;
  std::vector<std::string> environment;
  std::optional<std::string> image;
  std::optional<std::string> memory;
  std::optional<std::string> cpus;
  std::optional<int> pids;
  std::optional<std::string> ttl;
  std::optional<std::string> idle;
  std::optional<std::int64_t> max_uses;
  Workspace kind = Workspace::Real;
  Verbosity verbosity = Verbosity::Normal;
  Format format = Format::Text;
};

struct AdoptOptions {
  DaemonOptions daemon;
  std::string container;
  std::string name;
  std::optional<std::string> policy;
  std::vector<std::string> git;
  std::optional<std::string> ttl;
  std::optional<std::string> idle;
  Verbosity verbosity = Verbosity::Normal;
  Format format = Format::Text;
};

struct ExecOptions {
  DaemonOptions daemon;
  std::string session;
  std::vector<std::string> environment;
  std::string working_directory;
  std::vector<std::string> command;
};

struct ListOptions {
  DaemonOptions daemon;
  Format format = Format::Text;
};

struct StatusOptions {
  DaemonOptions daemon;
  std::string session;
  Format format = Format::Text;
};

struct LogsOptions {
  DaemonOptions daemon;
  std::string session;
  std::size_t lines = 100;
  bool follow = false;
  Format format = Format::Text;
};

struct AttachOptions {
  DaemonOptions daemon;
  std::string session;
};

struct GatewayStatusOptions {
  DaemonOptions daemon;
  Format format = Format::Text;
};

struct GatewayStartOptions {
  DaemonOptions daemon;
  std::optional<std::string> config;
  std::optional<std::string> state;
  std::optional<std::string> group;
};

struct GatewayStopOptions {
  DaemonOptions daemon;
};

struct DoctorOptions {
  FileOptions files;
  DaemonOptions daemon;
  Format format = Format::Text;
};

struct CompletionOptions {
  std::string shell;
};

struct ManualOptions {
  std::vector<std::string> command;  // whose page; none: the program's
  std::optional<std::string> folder;
};

struct GatewayReloadOptions {
  DaemonOptions daemon;
  std::vector<std::string> sessions;  // none: all
  Verbosity verbosity = Verbosity::Normal;
};

enum class SessionAction { Start, Stop, Destroy };

struct SessionOptions {
  DaemonOptions daemon;
  SessionAction action = SessionAction::Start;
  std::vector<std::string> sessions;
  Verbosity verbosity = Verbosity::Normal;
};

// Help, a completion, the manual or a usage error was printed; this is the exit code.
struct Done {
  int exit_code;
};

using Command = std::variant<Done, RunOptions, ServeOptions, CheckOptions, ExplainOptions, TrustOptions,
                             NewOptions, AdoptOptions, ExecOptions, ListOptions, StatusOptions,
                             SessionOptions, GatewayStatusOptions, GatewayStartOptions, GatewayStopOptions,
                             GatewayReloadOptions, DoctorOptions, LogsOptions, AttachOptions>;

Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace sallyport::cli
