#include "session/commands.h"

#include <fmt/format.h>

#include <utility>

#include "sandbox/profile.h"
#include "sandbox/stdio_check.h"

namespace sallyport::session {
namespace {

Status check(const std::array<Fd, 3>& stdio) {
  for (const Fd& fd : stdio) {
    if (!fd) {
      return fail(Reason::BadRequest,
                  "a command wants three descriptors: its standard input, output and error");
    }
    if (const auto why = sandbox::why_way_out(fd.get())) {
      return fail(Reason::BadRequest, "a standard descriptor " + *why + ", which would be a way out of it");
    }
  }
  return {};
}

}  // namespace

void Commands::set_defaults(std::vector<std::string> environment, std::string cwd) {
  environment_ = std::move(environment);
  cwd_ = std::move(cwd);
}

Result<Commands::Id> Commands::start(const Command& command, const std::array<Fd, 3>& stdio,
                                     Callbacks callbacks) {
  if (commands_.size() >= sandbox::kMaxCommands) {
    return fail(Reason::TooMany,
                fmt::format("{} commands run in this sandbox already", sandbox::kMaxCommands));
  }
  if (command.argv.empty()) return fail(Reason::BadRequest, "a command without a word");
  if (auto status = check(stdio); !status) return fail(std::move(status));
  const std::string& cwd = command.cwd.empty() ? cwd_ : command.cwd;
  auto environment = sandbox::add_to_environment(environment_, command.environment, cwd);
  if (!environment) return fail(std::move(environment));
  auto workload = sandbox::pack_workload({command.argv, std::move(*environment), cwd});
  if (!workload) return fail(std::move(workload));
  const Id id = next_;
  next_ = id + 1 == sandbox::kOwnCommand ? 1 : id + 1;
  auto sent = send_(sandbox::Exec{id, command.terminal},
                    std::array{workload->get(), stdio[0].get(), stdio[1].get(), stdio[2].get()});
  if (!sent) return fail(Reason::Overloaded, "the sandbox takes no command now: " + sent.error().detail);
  commands_.emplace(id, std::move(callbacks));
  return id;
}

void Commands::signal(Id id, int number) {
  if (!commands_.contains(id)) return;
  (void)send_(sandbox::ForwardSignal{id, static_cast<std::uint8_t>(number)}, {});
}

void Commands::signal_all(int number) {
  for (const auto& [id, callbacks] : commands_) signal(id, number);
}

// What init says of commands that are none is nothing: a workload may speak for it.
void Commands::hear(const sandbox::Started& started) {
  const auto command = commands_.find(started.command);
  if (command == commands_.end() || !command->second.on_started) return;
  // Once; and it may end the command's entry.
  std::exchange(command->second.on_started, nullptr)();
}

void Commands::hear(const sandbox::Refused& refused) {
  const Error why{Reason::Overloaded, "the sandbox cannot start it: " + refused.detail};
  end(commands_.find(refused.command), [&](const Callbacks& callbacks) { callbacks.on_failed(why); });
}

void Commands::hear(const sandbox::Exited& exited) {
  end(commands_.find(exited.command),
      [&](const Callbacks& callbacks) { callbacks.on_exited(exited.shell_code()); });
}

void Commands::end_all(const Error& why) {
  while (!commands_.empty()) {
    end(commands_.begin(), [&](const Callbacks& callbacks) { callbacks.on_failed(why); });
  }
}

void Commands::end(std::map<Id, Callbacks>::iterator command,
                   const std::function<void(const Callbacks&)>& tell) {
  if (command == commands_.end()) return;
  const auto ended = commands_.extract(command);
  tell(ended.mapped());
  if (commands_.empty() && when_none_runs_) when_none_runs_();
}

}  // namespace sallyport::session
