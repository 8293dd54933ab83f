#include "cli/host_options.h"

#include <CLI/CLI.hpp>

namespace sallyport::cli {
namespace {

constexpr char kGatewayStartFooter[] = R"(
A user's daemon is the user's own; root's is the host's, and systemd can start it too: `systemctl start sallyportd`.
What it says is in sallyportd.log in its state folder: ~/.local/state/sallyport, or /var/lib/sallyport.)";

constexpr char kCompletionFooter[] = R"(
An installation has these files already.

Examples:
  source <(sallyport completion bash)
  sallyport completion fish >~/.config/fish/completions/sallyport.fish)";

constexpr char kManualFooter[] = R"(
Examples:
  sallyport manual gateway start | man -l -
  sallyport manual --folder ~/.local/share/man/man1)";

}  // namespace

void add_file_options(CLI::App& app, FileOptions& files) {
  app.add_option("--policy", files.policy, "The policy, instead of ./sallyport.toml")->type_name("FILE");
  app.add_option("--config", files.config, "The operator's file, instead of ~/.config/sallyport/config.toml")
      ->type_name("FILE");
}

void add_json_flag(CLI::App& app, Format& format) {
  app.add_flag_callback("--json", [&format] { format = Format::Json; }, "Machine-readable");
}

void add_daemon_options(CLI::App& app, DaemonOptions& daemon) {
  app.add_option(
         "--socket", daemon.socket,
         "The daemon's socket, instead of $XDG_RUNTIME_DIR/sallyport/control.sock or, if there is none, "
         "/run/sallyport/control.sock")
      ->type_name("PATH");
}

CLI::App& add_gateway_status(CLI::App& gateway, GatewayStatusOptions& options) {
  CLI::App& status = *gateway.add_subcommand(
      "status", "Is there a daemon, and are its gate and vault ready? A healthcheck: exits with 0 or 1");
  add_daemon_options(status, options.daemon);
  add_json_flag(status, options.format);
  return status;
}

CLI::App& add_gateway_start(CLI::App& gateway, GatewayStartOptions& options) {
  CLI::App& start =
      *gateway.add_subcommand("start", "Start the daemon in the background, and wait until it is ready");
  start.footer(kGatewayStartFooter);
  add_daemon_options(start, options.daemon);
  start.add_option("--config", options.config, "The operator's file, for all of its sessions")
      ->type_name("FILE");
  start.add_option("--state", options.state, "Where it keeps the audit log, and its own")
      ->type_name("FOLDER");
  start.add_option("--group", options.group, "Members of this group may use it too")->type_name("NAME");
  return start;
}

CLI::App& add_gateway_stop(CLI::App& gateway, GatewayStopOptions& options) {
  CLI::App& stop =
      *gateway.add_subcommand("stop", "End the daemon, its sessions first, and wait until it is gone");
  add_daemon_options(stop, options.daemon);
  return stop;
}

CLI::App& add_doctor(CLI::App& app, DoctorOptions& options) {
  CLI::App& doctor = *app.add_subcommand(
      "doctor", "Try what sandboxes need here, layer by layer, and say what is wrong and what to do");
  add_file_options(doctor, options.files);
  add_daemon_options(doctor, options.daemon);
  add_json_flag(doctor, options.format);
  return doctor;
}

CLI::App& add_completion(CLI::App& app, CompletionOptions& options) {
  CLI::App& completion = *app.add_subcommand("completion", "Print what a shell completes these commands by");
  completion.footer(kCompletionFooter);
  completion.add_option("shell", options.shell, "Which one")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return completion;
}

CLI::App& add_manual(CLI::App& app, ManualOptions& options) {
  CLI::App& manual = *app.add_subcommand("manual", "Print a page of the manual, as man(1) takes it");
  manual.footer(kManualFooter);
  auto* command = manual.add_option("command", options.command, "A command's page, instead of the program's");
  manual.add_option("--folder", options.folder, "Write all pages into this folder instead")
      ->type_name("FOLDER")
      ->excludes(command);
  return manual;
}

}  // namespace sallyport::cli
