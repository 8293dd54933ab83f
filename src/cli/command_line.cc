#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

namespace sallyport::cli {
namespace {

constexpr char kFooter[] = R"(
Exit codes:
  of `run`: the command's own; 128+N when signal N ended it; 126 or 127 when it cannot be started;
            125 when Sallyport itself failed
  of `serve`: 0 when you ended it; 125 when Sallyport itself failed
  of `policy check`, `explain` and `trust`: 0 yes, 1 no
  2: the command line cannot be read

The policy is ./sallyport.toml, the operator's file ~/.config/sallyport/config.toml (mode 0600). Without a policy nothing
is reachable.

Example:
  sallyport run -- git clone https://github.com/acme/widget)";

constexpr char kRunFooter[] = R"(
Examples:
  sallyport run -- bash
  sallyport run --git github.com/acme/widget:push -- ./agent.sh
  sallyport run --mount ~/data:ro --env CI=1 -- make test)";

constexpr char kServeFooter[] = R"(
Each door is for one way of asking; at least one is needed. ADDRESS is a loopback address (127.0.0.0/8 or [::1]), PORT 0
any free port. Only your own connections are served. Once everything is ready there is one line on standard error, and
with --json one object on standard output; then it goes on until Ctrl-C.

Examples:
  sallyport serve --proxy 127.0.0.1:3128 --ca-file ca.pem
  https_proxy=http://127.0.0.1:3128 curl --cacert ca.pem https://api.example.com/
  sallyport serve --door 127.0.0.1:8443=https://api.example.com --ca-file ca.pem
  curl --cacert ca.pem --connect-to ::127.0.0.1:8443 https://api.example.com/)";

void add_file_options(CLI::App& app, FileOptions& files) {
  app.add_option("--policy", files.policy, "The policy, instead of ./sallyport.toml")->type_name("FILE");
  app.add_option("--config", files.config, "The operator's file, instead of ~/.config/sallyport/config.toml")
      ->type_name("FILE");
}

void add_audit_option(CLI::App& app, std::optional<std::string>& audit) {
  app.add_option("--audit", audit, "The audit log, instead of ~/.local/state/sallyport/audit.jsonl")
      ->type_name("FILE");
}

void add_json_flag(CLI::App& app, Format& format) {
  app.add_flag_callback("--json", [&format] { format = Format::Json; }, "Machine-readable");
}

CLI::App& add_run(CLI::App& app, RunOptions& options) {
  CLI::App& run = *app.add_subcommand(
      "run", "Run a command in a sandbox: sallyport run [OPTIONS] -- COMMAND [ARGUMENT]...");
  run.footer(kRunFooter);
  add_file_options(run, options.files);
  run.add_option("--git", options.git, "Grant this repository too, for this run; may be given again")
      ->type_name("HOST/OWNER/REPO[:push]")
      ->allow_extra_args(false);
  run.add_option("--mount", options.mounts, "Show this path too, at its own place; may be given again")
      ->type_name("PATH[:ro]")
      ->allow_extra_args(false);
  run.add_option("--env", options.environment, "Set this variable inside; may be given again")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  run.add_flag_callback(
      "--private-git", [&options] { options.workspace = Workspace::PrivateClone; },
      "Work on a clone of the repository here; what is committed comes back under refs/sallyport/");
  add_audit_option(run, options.audit);
  auto* quiet = run.add_flag_callback(
      "-q,--quiet", [&options] { options.verbosity = Verbosity::Quiet; }, "Say nothing but errors");
  run.add_flag_callback(
         "-v,--verbose", [&options] { options.verbosity = Verbosity::Verbose; },
         "Say what happens, and where the audit log is")
      ->excludes(quiet);
  return run;
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

}  // namespace

Command parse_command_line(const std::vector<std::string>& arguments) {
  SplitArguments split = split_arguments(arguments);
  RunOptions run_options;
  ServeOptions serve_options;
  CheckOptions check_options;
  ExplainOptions explain_options;
  TrustOptions trust_options;

  CLI::App app{
      "Runs a command in a sandbox that has no network and no credential: what policy allows goes through a\n"
      "gateway, which adds the credential outside.",
      "sallyport"};
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "sallyport " SALLYPORT_VERSION);

  const CLI::App& run = add_run(app, run_options);
  const CLI::App& serve = add_serve(app, serve_options);
  CLI::App& policy = *app.add_subcommand("policy", "Check a policy, ask it, or trust it");
  policy.require_subcommand(1);
  const CLI::App& check = add_check(policy, check_options);
  const CLI::App& explain = add_explain(policy, explain_options);
  const CLI::App& trust = add_trust(policy, trust_options);

  try {
    std::ranges::reverse(split.ours);  // as CLI11 wants them
    app.parse(split.ours);
    if (run.parsed() && split.command.empty()) throw CLI::RequiredError("-- COMMAND");
    if (serve.parsed() && !serve_options.has_door()) {
      throw CLI::RequiredError("--proxy, --tls, --http, --dns or --door");
    }
    if (!run.parsed() && split.separated) throw CLI::ExtrasError({"--"});
    if (explain.parsed() && explain_options.url.empty() && !explain_options.push) {
      throw CLI::RequiredError("URL or --push");
    }
  } catch (const CLI::ParseError& error) {
    return Done{app.exit(error, std::cout, std::cerr) == 0 ? kExitOk : kExitUsage};
  }

  if (run.parsed()) {
    run_options.command = std::move(split.command);
    return run_options;
  }
  if (serve.parsed()) return serve_options;
  if (check.parsed()) return check_options;
  if (trust.parsed()) return trust_options;
  return explain_options;
}

}  // namespace sallyport::cli
