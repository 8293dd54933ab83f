#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "base/text.h"
#include "cli/completion.h"
#include "cli/host_options.h"
#include "cli/manual.h"
#include "control/log_stream.h"

namespace sallyport::cli {
namespace {

constexpr char kFooter[] = R"(
Exit codes:
  of `run`: the command's own; 128+N when signal N ended it; 126 or 127 when it cannot be started;
            125 when Sallyport itself failed
  of `exec` and `attach`: the same
  of `new`, `start`, `stop`, `destroy`, `list`, `status`, `logs` and `gateway start` and `stop`: 0; 125 when it could not be done, and why
  of `serve`: 0 when you ended it; 125 when Sallyport itself failed
  of `policy check`, `explain` and `trust`, of `gateway status` and `doctor`: 0 yes, 1 no
  2: the command line cannot be read

The policy is ./sallyport.toml, the operator's file ~/.config/sallyport/config.toml (mode 0600). Without a policy nothing
is reachable.

Examples:
  sallyport run -- git clone https://github.com/acme/widget
  sallyport new widget && sallyport exec widget -- git fetch    (with a daemon: sallyport gateway start))";

constexpr char kRunFooter[] = R"(
Examples:
  sallyport run -- bash
  sallyport run --git github.com/acme/widget:push -- ./agent.sh
  sallyport run --mount ~/data:ro --env CI=1 -- make test)";

constexpr char kNewFooter[] = R"(
A session is a sandbox that stays, at a daemon (`sallyport gateway start`), until it is destroyed or the daemon ends. The operator's
file and the audit log are the daemon's. Prints the session's name.

Examples:
  sallyport new
  sallyport new agent --workspace ~/src/widget --git github.com/acme/widget:push
  sallyport new builder --image python:3.12 --memory 4GiB
  sallyport exec agent -- ./agent.sh)";

constexpr char kAdoptFooter[] = R"(
It must have been made without a network and with all that a container of Sallyport's own has (docs/containers.md):
one that is laxer is refused, with the lines to add, and stopped. The session's end is the container's end.

Examples:
  docker run -d --name agent --network none --cap-drop ALL --security-opt no-new-privileges \
    --security-opt seccomp=/usr/share/sallyport/seccomp.json --user 1000:1000 IMAGE ./agent.sh
  sallyport adopt agent --policy ./sallyport.toml)";

constexpr char kExecFooter[] = R"(
The command has this terminal, or these files and pipes, as its own, and gets the signals that are sent to this one.
It ends when this one is killed; what it left in the background goes on.

Examples:
  sallyport exec agent -- bash
  sallyport exec agent --env CI=1 -- make test)";

constexpr char kServeFooter[] = R"(
Each door is for one way of asking; at least one is needed. ADDRESS is a loopback address (127.0.0.0/8 or [::1]), PORT 0
any free port. Only your own connections are served. Once everything is ready there is one line on standard error, and
with --json one object on standard output; then it goes on until Ctrl-C.

Examples:
  sallyport serve --proxy 127.0.0.1:3128 --ca-file ca.pem
  https_proxy=http://127.0.0.1:3128 curl --cacert ca.pem https://api.example.com/
  sallyport serve --door 127.0.0.1:8443=https://api.example.com --ca-file ca.pem
  curl --cacert ca.pem --connect-to ::127.0.0.1:8443 https://api.example.com/)";

void add_audit_option(CLI::App& app, std::optional<std::string>& audit) {
  app.add_option("--audit", audit, "The audit log, instead of ~/.local/state/sallyport/audit.jsonl")
      ->type_name("FILE");
}

void add_quiet_flag(CLI::App& app, Verbosity& verbosity) {
  app.add_flag_callback(
      "-q,--quiet", [&verbosity] { verbosity = Verbosity::Quiet; }, "Say nothing but errors");
}

// Of `run` and `new`.
void add_sandbox_options(CLI::App& app, std::vector<std::string>& git, std::vector<std::string>& mounts,
                         std::vector<std::string>& environment, Workspace& workspace) {
  app.add_option("--git", git, "Grant this repository too, for this run; may be given again")
      ->type_name("HOST/OWNER/REPO[:push]")
      ->allow_extra_args(false);
  app.add_option("--mount", mounts, "Show this path too, at its own place; may be given again")
      ->type_name("PATH[:ro]")
      ->allow_extra_args(false);
  app.add_option("--env", environment, "Set this variable inside; may be given again")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_flag_callback(
      "--private-git", [&workspace] { workspace = Workspace::PrivateClone; },
      "Work on a clone of the repository here; what is committed comes back under refs/sallyport/");
}

CLI::App& add_run(CLI::App& app, RunOptions& options) {
  CLI::App& run = *app.add_subcommand(
      "run", "Run a command in a sandbox: sallyport run [OPTIONS] -- COMMAND [ARGUMENT]...");
  run.footer(kRunFooter);
  add_file_options(run, options.files);
  add_sandbox_options(run, options.git, options.mounts, options.environment, options.workspace);
  add_audit_option(run, options.audit);
  auto* quiet = run.add_flag_callback(
      "-q,--quiet", [&options] { options.verbosity = Verbosity::Quiet; }, "Say nothing but errors");
  run.add_flag_callback(
         "-v,--verbose", [&options] { options.verbosity = Verbosity::Verbose; },
         "Say what happens, and where the audit log is")
      ->excludes(quiet);
  return run;
}

void add_lifetime_options(CLI::App& command, std::optional<std::string>& ttl,
                          std::optional<std::string>& idle) {
  command.add_option("--ttl", ttl, "End it after that time: 30s, 20min, 8h, 7day")->type_name("TIME");
  command.add_option("--idle", idle, "End it when it made no use of a credential for that time")
      ->type_name("TIME");
}

CLI::App& add_new(CLI::App& app, NewOptions& options) {
  CLI::App& command = *app.add_subcommand("new", "Make a session at the daemon: a sandbox that stays");
  command.footer(kNewFooter);
  command.add_option("name", options.name, "Its name; one is made of the workspace's otherwise");
  command.add_option("--workspace", options.workspace, "The folder to work in, instead of this one")
      ->type_name("FOLDER");
  command.add_option("--policy", options.policy, "The policy, instead of the workspace's sallyport.toml")
      ->type_name("FILE");
  add_sandbox_options(command, options.git, options.mounts, options.environment, options.kind);
  auto* image = command
                    .add_option("--image", options.image,
                                "A container of this image, instead of the host's own programs")
                    ->type_name("IMAGE");
  command
      .add_option("--memory", options.memory, "Of a container: 512MiB, 4GiB; half of the host's otherwise")
      ->type_name("SIZE")
      ->needs(image);
  command.add_option("--cpus", options.cpus, "Of a container: 2, 1.5; all otherwise")
      ->type_name("NUMBER")
      ->needs(image);
  command.add_option("--pids", options.pids, "Processes in a container; 4096 otherwise")
      ->type_name("NUMBER")
      ->needs(image);
  add_lifetime_options(command, options.ttl, options.idle);
  command
      .add_option("--max-uses", options.max_uses,
                  "How many of its requests get a credential; then they are refused")
      ->type_name("NUMBER");
  add_daemon_options(command, options.daemon);
  add_quiet_flag(command, options.verbosity);
  add_json_flag(command, options.format);
  return command;
}

CLI::App& add_adopt(CLI::App& app, AdoptOptions& options) {
  CLI::App& command = *app.add_subcommand("adopt", "Make a session of a container that runs already, sealed");
  command.footer(kAdoptFooter);
  command.add_option("container", options.container, "Its name, or its id")->required();
  command.add_option("--name", options.name, "The session's name, instead of the container's");
  command.add_option("--policy", options.policy, "The policy, instead of ./sallyport.toml")
      ->type_name("FILE");
  command.add_option("--git", options.git, "Grant this repository too; may be given again")
      ->type_name("HOST/OWNER/REPO[:push]")
      ->allow_extra_args(false);
  add_lifetime_options(command, options.ttl, options.idle);
  add_daemon_options(command, options.daemon);
  add_quiet_flag(command, options.verbosity);
  add_json_flag(command, options.format);
  return command;
}

CLI::App& add_exec(CLI::App& app, ExecOptions& options) {
  CLI::App& exec = *app.add_subcommand(
      "exec", "Run a command in a session: sallyport exec SESSION [OPTIONS] -- COMMAND [ARGUMENT]...");
  exec.footer(kExecFooter);
  exec.add_option("session", options.session, "The session's name, or its id")->required();
  exec.add_option("--env", options.environment, "Set this variable for it; may be given again")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  exec.add_option("--cwd", options.working_directory,
                  "The folder inside to start in, instead of the workspace")
      ->type_name("FOLDER");
  add_daemon_options(exec, options.daemon);
  return exec;
}

CLI::App& add_list(CLI::App& app, ListOptions& options) {
  CLI::App& list = *app.add_subcommand("list", "Show the daemon's sessions");
  add_daemon_options(list, options.daemon);
  add_json_flag(list, options.format);
  return list;
}

CLI::App& add_status(CLI::App& app, StatusOptions& options) {
  CLI::App& status = *app.add_subcommand("status", "Show one session: what it may reach, and what it did");
  status.add_option("session", options.session, "The session's name, or its id")->required();
  add_daemon_options(status, options.daemon);
  add_json_flag(status, options.format);
  return status;
}

CLI::App& add_logs(CLI::App& app, LogsOptions& options) {
  CLI::App& logs = *app.add_subcommand("logs", "Show what a session asked for, and what became of it");
  logs.add_option("session", options.session, "The session's name, or its id")->required();
  logs.add_flag("-f,--follow", options.follow, "And what comes, until the session has ended");
  logs.add_option("-n,--lines", options.lines, "The last ones, so many at most, instead of 100")
      ->type_name("NUMBER")
      ->check(CLI::Range(std::size_t{0}, control::kMaxLogLines, "NUMBER"));
  add_daemon_options(logs, options.daemon);
  logs.add_flag_callback(
      "--json", [&options] { options.format = Format::Json; }, "As it is in the audit log: docs/audit.md");
  return logs;
}

CLI::App& add_attach(CLI::App& app, AttachOptions& options) {
  CLI::App& attach = *app.add_subcommand("attach", "A shell in a session, with this terminal");
  attach.add_option("session", options.session, "The session's name, or its id")->required();
  add_daemon_options(attach, options.daemon);
  return attach;
}

void add_session_actions(CLI::App& app, SessionOptions& options) {
  struct Named {
    const char* name;
    SessionAction action;
    const char* help;
  };
  for (const Named& each :
       {Named{"stop", SessionAction::Stop,
              "End a session's sandbox and all that runs in it; it can be started again"},
        Named{"start", SessionAction::Start, "Start a session that was stopped, as it was asked for"},
        Named{"destroy", SessionAction::Destroy, "End a session, and forget it"}}) {
    CLI::App& command = *app.add_subcommand(each.name, each.help);
    command.add_option("session", options.sessions, "Names, or ids")->required();
    command.callback([&options, action = each.action] { options.action = action; });
    add_daemon_options(command, options.daemon);
    add_quiet_flag(command, options.verbosity);
  }
}

CLI::App& add_gateway_reload(CLI::App& gateway, GatewayReloadOptions& options) {
  CLI::App& reload = *gateway.add_subcommand(
      "reload", "Read policy and operator's file again: what they no longer allow ends at once");
  reload.add_option("session", options.sessions, "Names, or ids (default: all that run)");
  add_daemon_options(reload, options.daemon);
  add_quiet_flag(reload, options.verbosity);
  return reload;
}

CLI::App& add_serve(CLI::App& app, ServeOptions& options) {
  CLI::App& serve = *app.add_subcommand(
      "serve", "Judge your own programs' requests without a sandbox, at doors on loopback addresses");
  serve.footer(kServeFooter);
  add_file_options(serve, options.files);
  serve.add_option("--proxy", options.proxy, "A door for clients that are told of a proxy")
      ->type_name("ADDRESS:PORT");
  serve.add_option("--tls", options.tls, "For TLS connections, which go to their SNI's host, port 443")
      ->type_name("ADDRESS:PORT");
  serve.add_option("--http", options.http, "For HTTP in the clear, which goes to its Host, port 80")
      ->type_name("ADDRESS:PORT");
  serve.add_option("--dns", options.dns, "For DNS, by UDP and TCP")->type_name("ADDRESS:PORT");
  serve
      .add_option("--door", options.doors,
                  "For connections that all go to one host, by TLS or in the clear; may be given again")
      ->type_name("ADDRESS:PORT=https://HOST")
      ->allow_extra_args(false);
  serve
      .add_option("--ca-file", options.ca_file,
                  "Write here which authorities clients shall trust; removed at the end")
      ->type_name("FILE");
  add_audit_option(serve, options.audit);
  add_json_flag(serve, options.format);
  return serve;
}

CLI::App& add_check(CLI::App& policy, CheckOptions& options) {
  CLI::App& check = *policy.add_subcommand("check", "Find mistakes: file, line and column, and what to do");
  check.add_option("file", options.files.policy, "The policy, instead of ./sallyport.toml")
      ->type_name("FILE");
  check.add_option("--config", options.files.config, "The operator's file")->type_name("FILE");
  add_json_flag(check, options.format);
  return check;
}

CLI::App& add_explain(CLI::App& policy, ExplainOptions& options) {
  CLI::App& explain =
      *policy.add_subcommand("explain", "Is this allowed, by which rule, and what would allow it?");
  add_file_options(explain, options.files);
  auto* url = explain.add_option("url", options.url, "What a program inside would ask for")->type_name("URL");
  explain.add_option("--push", options.push, "Ask about a push to this repository")
      ->type_name("HOST/OWNER/REPO")
      ->excludes(url);
  explain
      .add_option_function<std::string>(
          "--method",
          [&options](const std::string& text) { options.method = policy::method_from_name(text); },
          "Ask about a request with this method, instead of a GET or what git would do")
      ->type_name("METHOD")
      ->needs(url)
      ->check([](const std::string& text) {
        return policy::method_from_name(text) ? "" : "must be one of " + policy::Methods::all().str();
      });
  add_json_flag(explain, options.format);
  return explain;
}

CLI::App& add_trust(CLI::App& policy, TrustOptions& options) {
  CLI::App& trust = *policy.add_subcommand(
      "trust",
      "Consent to a policy that uses credentials, as it is now: shows it, or what changed, and asks");
  auto* file = trust.add_option("file", options.files.policy, "The policy, instead of ./sallyport.toml")
                   ->type_name("FILE");
  trust.add_option("--config", options.files.config, "The operator's file")->type_name("FILE");
  auto* yes = trust.add_flag_callback(
      "--yes", [&options] { options.answer = Answer::Yes; }, "Do not ask: somebody has read it");
  auto* list = trust.add_flag_callback(
      "--list", [&options] { options.action = TrustAction::List; }, "Show what is trusted");
  trust
      .add_flag_callback(
          "--revoke", [&options] { options.action = TrustAction::Revoke; }, "Trust the file no more")
      ->excludes(list)
      ->excludes(yes);
  list->excludes(yes)->excludes(file);
  add_json_flag(trust, options.format);
  return trust;
}

// What stands behind "--" is the command, and is not looked at.
struct SplitArguments {
  std::vector<std::string> ours;
  std::vector<std::string> command;
  bool separated = false;
};

SplitArguments split_arguments(const std::vector<std::string>& arguments) {
  const auto separator = std::ranges::find(arguments, "--");
  SplitArguments result{{arguments.begin(), separator}, {}, separator != arguments.end()};
  if (result.separated) result.command.assign(separator + 1, arguments.end());
  return result;
}

// CLI11 says of a word that is no command only that one is missing.
void refuse_unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path;
  for (const std::string& word : words) {
    const auto below = at->get_subcommands([](const CLI::App*) { return true; });
    if (below.empty() || word.starts_with('-')) return;
    path += (path.empty() ? "" : " ") + word;
    const auto found = std::ranges::find(below, word, &CLI::App::get_name);
    if (found == below.end()) {
      throw CLI::ArgumentMismatch("There is no command '" + escaped(path) + "'");
    }
    at = *found;
  }
}

}  // namespace

Command parse_command_line(const std::vector<std::string>& arguments) {
  SplitArguments split = split_arguments(arguments);
  RunOptions run_options;
  ServeOptions serve_options;
  CheckOptions check_options;
  ExplainOptions explain_options;
  TrustOptions trust_options;
  NewOptions new_options;
  AdoptOptions adopt_options;
  ExecOptions exec_options;
  ListOptions list_options;
  StatusOptions status_options;
  LogsOptions logs_options;
  AttachOptions attach_options;
  SessionOptions session_options;
  GatewayStatusOptions gateway_options;
  GatewayStartOptions gateway_start_options;
  DoctorOptions doctor_options;
  GatewayStopOptions gateway_stop_options;
  CompletionOptions completion_options;
  ManualOptions manual_options;
  GatewayReloadOptions reload_options;

  CLI::App app{
      "Runs a command in a sandbox that has no network and no credential: what policy allows goes through a\n"
      "gateway, which adds the credential outside.",
      "sallyport"};
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "sallyport " SALLYPORT_VERSION);

  const CLI::App& run = add_run(app, run_options);
  const CLI::App& serve = add_serve(app, serve_options);
  const CLI::App& make = add_new(app, new_options);
  const CLI::App& adopt = add_adopt(app, adopt_options);
  const CLI::App& exec = add_exec(app, exec_options);
  const CLI::App& list = add_list(app, list_options);
  const CLI::App& status = add_status(app, status_options);
  const CLI::App& logs = add_logs(app, logs_options);
  const CLI::App& attach = add_attach(app, attach_options);
  add_session_actions(app, session_options);
  CLI::App& gateway = *app.add_subcommand(
      "gateway", "Start the daemon, end it, have it read its files again, or ask how it is");
  gateway.require_subcommand(1);
  const CLI::App& gateway_status = add_gateway_status(gateway, gateway_options);
  const CLI::App& gateway_start = add_gateway_start(gateway, gateway_start_options);
  const CLI::App& gateway_stop = add_gateway_stop(gateway, gateway_stop_options);
  const CLI::App& gateway_reload = add_gateway_reload(gateway, reload_options);
  const CLI::App& doctor = add_doctor(app, doctor_options);
  CLI::App& policy = *app.add_subcommand("policy", "Check a policy, ask it, or trust it");
  policy.require_subcommand(1);
  const CLI::App& check = add_check(policy, check_options);
  const CLI::App& explain = add_explain(policy, explain_options);
  const CLI::App& trust = add_trust(policy, trust_options);
  const CLI::App& completion = add_completion(app, completion_options);
  const CLI::App& manual = add_manual(app, manual_options);

  try {
    refuse_unknown_command(app, split.ours);
    std::ranges::reverse(split.ours);  // as CLI11 wants them
    app.parse(split.ours);
    if ((run.parsed() || exec.parsed()) && split.command.empty()) throw CLI::RequiredError("-- COMMAND");
    if (serve.parsed() && !serve_options.has_door()) {
      throw CLI::RequiredError("--proxy, --tls, --http, --dns or --door");
    }
    if (!run.parsed() && !exec.parsed() && split.separated) throw CLI::ExtrasError({"--"});
    if (explain.parsed() && explain_options.url.empty() && !explain_options.push) {
      throw CLI::RequiredError("URL or --push");
    }
  } catch (const CLI::ParseError& error) {
    return Done{app.exit(error, std::cout, std::cerr) == 0 ? kExitOk : kExitUsage};
  }

  if (completion.parsed()) {
    std::cout << completion_script(words_of(app), completion_options.shell);
    return Done{kExitOk};
  }
  if (manual.parsed()) return Done{print_manual(words_of(app), manual_options)};
  if (run.parsed()) {
    run_options.command = std::move(split.command);
    return run_options;
  }
  if (exec.parsed()) {
    exec_options.command = std::move(split.command);
    return exec_options;
  }
  if (make.parsed()) return new_options;
  if (adopt.parsed()) return adopt_options;
  if (list.parsed()) return list_options;
  if (status.parsed()) return status_options;
  if (logs.parsed()) return logs_options;
  if (attach.parsed()) return attach_options;
  if (!session_options.sessions.empty()) return session_options;
  if (gateway_status.parsed()) return gateway_options;
  if (doctor.parsed()) return doctor_options;
  if (gateway_start.parsed()) return gateway_start_options;
  if (gateway_stop.parsed()) return gateway_stop_options;
  if (gateway_reload.parsed()) return reload_options;
  if (serve.parsed()) return serve_options;
  if (check.parsed()) return check_options;
  if (trust.parsed()) return trust_options;
  return explain_options;
}

}  // namespace sallyport::cli
