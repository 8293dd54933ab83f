// The words of the command line, as values. Every option and help text is defined here and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policy/method.h"

namespace sallyport::cli {

// Exit codes besides the workload's own; they are in `sallyport --help`.
inline constexpr int kExitOk = 0;
inline constexpr int kExitNo = 1;     // `policy check` found problems; `explain`: not allowed; `trust`: not
                                      // trusted; `gateway status`: not ready
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
  std::optional<std::string> ttl;
  std::optional<std::string> idle;
  Workspace kind = Workspace::Real;
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

struct GatewayStatusOptions {
  DaemonOptions daemon;
  Format format = Format::Text;
};

enum class SessionAction { Start, Stop, Destroy };

struct SessionOptions {
  DaemonOptions daemon;
  SessionAction action = SessionAction::Start;
  std::vector<std::string> sessions;
  Verbosity verbosity = Verbosity::Normal;
};

// Help or a usage error was printed; this is the exit code.
struct Done {
  int exit_code;
};

using Command =
    std::variant<Done, RunOptions, ServeOptions, CheckOptions, ExplainOptions, TrustOptions, NewOptions,
                 ExecOptions, ListOptions, StatusOptions, SessionOptions, GatewayStatusOptions>;

Command parse_command_line(const std::vector<std::string>& arguments);

}  // namespace sallyport::cli
