#include "session/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "base/visitor.h"
#include "os/netlink.h"
#include "os/nflog.h"
#include "session/probes.h"
#include "session/runtime_choice.h"
#include "wire/grant_codec.h"

namespace sallyport::session {

Session::Session(os::EventLoop& loop, Gateway& gateway, Request request, std::array<Fd, 3> stdio,
                 Callbacks callbacks)
    : loop_(loop),
      gateway_(gateway),
      request_(std::move(request)),
      stdio_(std::move(stdio)),
      callbacks_(std::move(callbacks)),
      id_(random_hex(16)),
      commands_([this](const sandbox::ToInit& message, std::span<const int> fds) {
        return os::send_packet(init_.get(), sandbox::encode(message), fds);
      }),
      regrant_({.plan = [this] { return read_files_again(); },
                .on_notice = [this](const std::string& text) { callbacks_.on_notice(text); }}) {}

Session::~Session() {
  for (const auto& timer : {start_timer_, drain_timer_, coalesce_timer_, stop_timer_}) {
    if (timer) loop_.cancel(*timer);
  }
  if (init_) loop_.unwatch(init_.get());
  if (runtime_ && runtime_->namespaces().link_watch) {
    loop_.unwatch(runtime_->namespaces().link_watch.get());
  }
}

void Session::start() {
  auto plan = make_plan(request_);
  if (!plan) return fail_session({Reason::SessionEnded, std::move(plan).error()});
  plan_ = std::move(*plan);
  for (const std::string& notice : plan_->notices) callbacks_.on_notice(notice);
  PrivateGit::remove_leftovers(request_.state_folder + "/clones", gateway_.removals());
  if (plan_->private_git) return make_private_clone();
  build();
}

// The clone takes the workspace's place among the mounts. How long that takes depends on the repository, so
// it has a limit of its own.
void Session::make_private_clone() {
  const sandbox::Mount& real = plan_->mounts.front();
  const std::string inside = real.path + "/";
  const std::string& policy = request_.sources.policy_path;
  private_git_.emplace(loop_, gateway_.removals(),
                       PrivateGit::Setup{
                           .clones_folder = request_.state_folder + "/clones",
                           .session = id_,
                           .ids = plan_->identities.sandbox,
                           .become = plan_->identities.become_sandbox,
                           .ignored = policy.starts_with(inside) ? policy.substr(inside.size()) : "",
                       });
  private_git_->make(real, [this](Status made) {
    if (phase_ != Phase::Planned) return;  // abandoned meanwhile
    if (!made) return proceed(made);
    sandbox::Mount& workspace = plan_->mounts.front();
    auto clone = private_git_->clone(workspace.path);
    if (!clone) return fail_session(std::move(clone).error());
    clone->alias = workspace.alias;
    workspace = std::move(*clone);
    callbacks_.on_notice(private_git_->notice());
    build();
  });
}

void Session::build() {
  const bool in_container = !request_.image.empty() || !request_.adopted.empty();
  start_timer_ = loop_.after(in_container ? kContainerStartLimit : kStartLimit, [this] {
    start_timer_.reset();
    fail_session({Reason::SessionEnded, "the sandbox did not get ready in time"});
  });
  if (auto status = prepare(); !status) return proceed(status);
  runtime_->make_namespaces([this](const Status& made) { on_namespaces(made); });
}

Status Session::prepare() {
  auto sink = open_audit_log(request_.audit_path, id_);
  if (!sink) return fail(std::move(sink));
  journal_.emplace(std::move(*sink), id_);
  journal_->count_in(gateway_.meter());
  coalesce_timer_ = loop_.every(audit::Coalescer::kInterval, [this] { journal_->tell_coalesced(); });
  auto ca = make_authority(id_);
  if (!ca) return fail(std::move(ca));
  ca_ = std::move(*ca);
  plan_->profile.session_ca_pem = ca_.certificate_pem;
  auto runtime = choose_runtime(loop_, gateway_, request_, *plan_, id_,
                                [this](const std::string& how) { on_sandbox_end(how); });
  if (!runtime) return fail(std::move(runtime));
  runtime_ = std::move(*runtime);
  return {};
}

void Session::on_namespaces(const Status& made) {
  if (phase_ != Phase::Planned) return;  // abandoned meanwhile
  if (!made && !request_.adopted.empty()) journal_->alarm(made.error());
  if (!made) return proceed(made);
  auto links = os::list_links(runtime_->namespaces().link_query.get());
  if (!links) return proceed(fail(std::move(links)));
  if (auto status = os::only_loopback(*links); !status) return proceed(status);
  if (auto status = start_services(); !status) return proceed(status);
  look_at_workspace();
}

Status Session::start_services() {
  auto started = gateway_.start(plan_->identities, plan_->grant.uses_system_roots());
  if (!started) return started;
  services_.emplace(loop_, gateway_, *journal_,
                    Services::Setup{.session = id_,
                                    .encoded_grant = wire::encode_grant(plan_->grant),
                                    .ca_certificate_pem = ca_.certificate_pem,
                                    .ca_key_pem = ca_.key_pem,
                                    .credentials = plan_->credentials,
                                    .credentials_owner = ::geteuid(),
                                    .max_uses = request_.max_uses.value_or(UINT64_MAX)},
                    Services::Callbacks{
                        .on_usable = [this] { go(); },
                        .on_grant_in_force = [this] { regrant_.on_grant_in_force(); },
                        .on_grant_usable = [this] { regrant_.on_grant_usable(); },
                        .on_notice = [this](const std::string& text) { callbacks_.on_notice(text); },
                        .on_failure = [this](Error error) { fail_session(std::move(error)); },
                    });
  services_->start();
  return {};
}

void Session::look_at_workspace() {
  workspace_looks_.emplace(loop_, gateway_.file_watcher(), plan_->guard, plan_->identities.become_sandbox,
                           [this](const std::vector<sandbox::Finding>& findings) { report(findings); });
  workspace_looks_->begin([this](const Status& looked) {
    if (phase_ != Phase::Planned) return;
    if (!looked) return proceed(looked);
    if (plan_->guard.was_left_behind) {
      callbacks_.on_notice("an earlier run here was killed before it could look at what its sandbox left");
      for (const auto& [path, print] : workspace_looks_->armed()) {
        callbacks_.on_notice("look at " + escaped(path) + ", which can run programs, before you call git");
      }
    }
    start_sandbox();
  });
}

void Session::start_sandbox() {
  runtime_->start({.profile = plan_->profile,
                   .mounts = plan_->mounts,
                   .stdio = {stdio_[0].get(), stdio_[1].get(), stdio_[2].get()},
                   .terminal = terminal()},
                  [this](Result<Fd> control) {
                    if (phase_ != Phase::Planned) return;
                    proceed(control ? begin_phase1(std::move(*control)) : fail(std::move(control)));
                  });
  // The authorities' certificates are among it, which are large; a mere assignment keeps a string's memory.
  std::exchange(plan_->profile, {});
  // Nobody but the sandbox may keep its terminal or pipes open, or their readers would never see an end.
  for (Fd& fd : stdio_) fd.reset();
}

Status Session::begin_phase1(Fd control) {
  init_ = std::move(control);
  if (auto status = os::set_nonblocking(init_.get()); !status) return status;
  loop_.watch(init_.get(), POLLIN, [this](short) { hear_init(); });
  auto decoys = sandbox::Decoys::open();
  if (!decoys) return fail(std::move(decoys));
  decoys_.emplace(std::move(*decoys));
  journal_->set_container(runtime_->identity());
  plan_->environment = runtime_->environment(std::move(plan_->environment));
  auto workload = sandbox::pack_workload({request_.command, plan_->environment, plan_->working_directory});
  if (!workload) return fail(std::move(workload));
  commands_.set_defaults(std::move(plan_->environment), plan_->working_directory);
  phase_ = Phase::Closed;
  tell_init(ask_with_shut_doors(plan_->mounts, *decoys_, terminal(), runtime_->users()),
            std::array{workload->get()});
  return {};
}

// Phase 1 has passed: there was no way out before the doors. Now there is one.
Status Session::open_doors() {
  static_assert(os::kNewConnections == *policy::Limits{}.new_connections);
  auto doors = runtime_->open_doors(plan_->grant.limits.new_connections);
  if (!doors) return fail(std::move(doors));
  if (doors->mode == os::DoorMode::Direct) {
    callbacks_.on_notice(fmt::format(
        "nftables cannot be used ({}): only ports 80, 443, 53 and the proxy's have doors; rules for "
        "other ports do not work, and those reach the sandbox's own servers without an audit line",
        doors->fallback_reason));
  }
  if (const std::string notice = runtime_->notice(); !notice.empty()) callbacks_.on_notice(notice);
  door_mode_ = doors->mode;
  for (const os::Listener& listener : doors->listeners) has_ipv6_ |= listener.family == AF_INET6;
  const wire::GateProbe probe = make_gate_probe();
  services_->set_probe(probe);
  services_->open_doors(std::move(*doors));
  phase_ = Phase::Doors;
  tell_init(ask_with_open_doors(probe, *decoys_, has_ipv6_));
  return {};
}

// Both phases have passed inside; what they cannot see is asked here, and only then do credentials come into
// play.
Status Session::finish_preflight() {
  if (const auto leak = decoys_->seen()) {
    return fail(Reason::Internal,
                fmt::format("the sandbox leaks: something inside reached {} outside", *leak));
  }
  decoys_.reset();
  auto links = os::list_links(runtime_->namespaces().link_query.get());
  if (!links) return fail(std::move(links));
  if (auto status = os::only_loopback(*links); !status) return status;
  loop_.watch(runtime_->namespaces().link_watch.get(), POLLIN, [this](short) { on_link_event(); });
  if (auto status = open_packet_log(); !status) return status;
  services_->set_probe({.armed = false, .probe_line = "", .door_line = ""});

  auto recorded = journal_->append(session_start(fmt::format(
      "workspace {}, uid {}, {} rules, doors {}{}", plan_->working_directory, plan_->identities.sandbox.uid,
      plan_->grant.rules(), door_mode_ == os::DoorMode::Redirect ? "by redirect" : "without nftables",
      private_git_ ? ", private clone" : "")));
  if (!recorded) return recorded;
  start_recorded_ = true;
  phase_ = Phase::Usable;
  return services_->open_for_use();
}

// The probes' own refused packets are reported by now (the kernel reports as it refuses), and are nobody's to
// read about.
Status Session::open_packet_log() {
  if (!runtime_->namespaces().nflog) return {};
  for (;;) {
    auto reports = os::read_nflog(runtime_->namespaces().nflog->get());
    if (!reports) return fail(std::move(reports));
    if (reports->empty()) break;
  }
  services_->open_packet_log(std::move(*runtime_->namespaces().nflog));
  return {};
}

void Session::go() {
  if (phase_ != Phase::Usable) return;
  phase_ = Phase::Running;
  if (private_git_) {
    clone_holds_work_ = true;
    private_git_->hold();
  }
  if (start_timer_) loop_.cancel(*start_timer_);
  start_timer_.reset();
  tell_init(sandbox::Go{});
  regrant_.begin(*plan_, *services_, *journal_);
}

// A policy that was replaced has lost its protection, which is found here if its watch has not told of it
// yet.
Regrant::Planned Session::read_files_again() {
  workspace_looks_->look();
  if (failure_) return std::unexpected(failure_->detail);
  return plan_grant_again(request_.sources, *plan_, request_.client);
}

void Session::tell_init(const sandbox::ToInit& message, std::span<const int> fds) {
  // A failure means that init is gone, which its process's end will say.
  (void)os::send_packet(init_.get(), sandbox::encode(message), fds);
}

// True: there may be more.
bool Session::hear_init() {
  auto packet = os::recv_packet(init_.get());
  if (packet && !*packet) return false;
  if (!packet || (*packet)->end) {
    loop_.unwatch(init_.get());
    return false;
  }
  auto message = sandbox::decode_from_init((*packet)->bytes);
  if (message) {
    on_init_message(*message);
  } else {
    fail_session({Reason::SessionEnded, "the sandbox's init sent a message that is none"});
  }
  return true;
}

void Session::on_init_message(const sandbox::FromInit& message) {
  std::visit(Visitor{
                 [this](const sandbox::Passed& passed) { proceed(on_phase_passed(passed.phase)); },
                 [this](const sandbox::Failed& failed) { on_preflight_failed(failed); },
                 [this](const sandbox::Started& started) { on_started(started); },
                 [this](const sandbox::Refused& refused) { commands_.hear(refused); },
                 [this](const sandbox::Stopped&) { callbacks_.on_stopped(); },
                 [this](const sandbox::Exited& exited) { on_exited(exited); },
             },
             message);
}

// A message out of order can only come from a workload that took init over: it proves nothing, and ends the
// session.
Status Session::on_phase_passed(int phase) {
  if (phase == 1 && phase_ == Phase::Closed) return open_doors();
  if (phase == 2 && phase_ == Phase::Doors) return finish_preflight();
  return fail(Reason::Internal, "the sandbox's init answered out of order");
}

void Session::on_preflight_failed(const sandbox::Failed& failed) {
  if (phase_ != Phase::Closed && phase_ != Phase::Doors) {
    return fail_session({Reason::SessionEnded, "the sandbox's init answered out of order"});
  }
  fail_session({Reason::SessionEnded,
                fmt::format("the pre-flight check '{}' failed, so the command was not started: {}",
                            sandbox::name(failed.check), failed.detail)});
}

void Session::on_started(const sandbox::Started& started) {
  if (started.command != sandbox::kOwnCommand) return commands_.hear(started);
  callbacks_.on_started();
}

void Session::on_exited(const sandbox::Exited& exited) {
  if (exited.command != sandbox::kOwnCommand) return commands_.hear(exited);
  if (phase_ != Phase::Running)
    return fail_session({Reason::SessionEnded, "the sandbox's init answered out of order"});
  exit_code_ = exited.shell_code();
  end_sandbox();
}

void Session::on_sandbox_end(const std::string& how) {
  // Its last words may still wait: all of a short command can come to pass within one turn of the loop.
  while (init_ && phase_ < Phase::Ending && hear_init()) {
  }
  if (phase_ > Phase::Ending) return;  // they were the end
  // The first process inside says how the command ended, and nothing inside can kill it. Without a word from
  // it, it or what holds it was killed from outside.
  if (phase_ < Phase::Ending && !failure_) {
    failure_ = {Reason::ProcessDied,
                fmt::format("the sandbox died ({}){}", how,
                            phase_ == Phase::Running ? "" : " before the command was started")};
    journal_->alarm(*failure_);
  }
  phase_ = Phase::Ending;
  finish_when_drained();
}

// The rules let nothing through a device that came in, as long as they are there.
void Session::lower(const std::vector<os::Link>& links) {
  for (const os::Link& link : links) {
    if (!link.loopback) (void)os::lower_link(runtime_->namespaces().link_query.get(), link.index);
  }
}

void Session::on_link_event() {
  Status status = os::drain_link_events(runtime_->namespaces().link_watch.get());
  if (status) {
    const auto links = os::list_links(runtime_->namespaces().link_query.get());
    status = links ? os::only_loopback(*links) : std::unexpected(links.error());
    if (!status && links) lower(*links);
  }
  if (status) return;
  loop_.unwatch(runtime_->namespaces().link_watch.get());
  journal_->alarm({Reason::SessionEnded, status.error().detail});
  fail_session({Reason::SessionEnded,
                fmt::format("the sandbox's network changed from outside, so the session was ended: {}",
                            status.error().detail)});
}

void Session::report(const std::vector<sandbox::Finding>& findings) {
  for (const sandbox::Finding& finding : findings) {
    journal_->alarm({Reason::WorkspaceTampered, finding.text});
    // What was said as the session's end need not be said twice.
    const bool ends = finding.consequence == sandbox::Finding::Consequence::EndSession && !failure_;
    if (!ends) {
      callbacks_.on_notice(finding.text);
    } else if (phase_ < Phase::Ending) {
      fail_session({Reason::WorkspaceTampered, "the session was ended: " + finding.text});
    } else {
      failure_ = Error{Reason::WorkspaceTampered, finding.text};
    }
  }
}

void Session::signal(int number) {
  if (phase_ >= Phase::Ending) return;
  if (phase_ != Phase::Running)
    return fail_session({Reason::SessionEnded, "interrupted before the command was started"});
  if (number == SIGCONT) return tell_init(sandbox::Resume{});
  if (sandbox::is_forwarded(number))
    tell_init(sandbox::ForwardSignal{sandbox::kOwnCommand, static_cast<std::uint8_t>(number)});
}

Result<Commands::Id> Session::exec(const Command& command, const std::array<Fd, 3>& stdio,
                                   Commands::Callbacks callbacks) {
  if (phase_ != Phase::Running || stop_timer_) return fail(Reason::SessionEnded, "the sandbox does not run");
  if (!request_.adopted.empty()) {
    return fail(Reason::BadRequest, fmt::format("it is a container that Sallyport did not make: `{} exec {}`",
                                                gateway_.containers()->command(), request_.adopted));
  }
  return commands_.start(command, stdio, std::move(callbacks));
}

void Session::stop() {
  if (phase_ >= Phase::Ending || stop_timer_) return;
  if (phase_ != Phase::Running) {
    return fail_session({Reason::SessionEnded, "it was stopped before it was ready"});
  }
  if (commands_.running() == 0) return end_sandbox();
  commands_.when_none_runs([this] { end_sandbox(); });
  stop_timer_ = loop_.after(kStopGrace, [this] { end_sandbox(); });
  commands_.signal_all(SIGTERM);
}

void Session::raise_alarm(const std::string& why) {
  if (journal_) journal_->alarm({Reason::SessionEnded, why});
  abandon(why);
}

void Session::proceed(const Status& status) {
  if (!status) fail_session(status.error());
}

void Session::fail_session(Error error) {
  if (phase_ > Phase::Ending || failure_) return;
  failure_ = std::move(error);
  end_sandbox();
}

// Kills everything in it.
void Session::end_sandbox() {
  // The time that stop() gave may run out in the very turn in which all had ended.
  if (phase_ > Phase::Ending) return;
  phase_ = Phase::Ending;
  if (!runtime_ || !runtime_->kill()) finish_when_drained();
}

// With the sandbox dead, its connections end, and the gate says so; requests get the time for their last
// line.
void Session::finish_when_drained() {
  if (drain_timer_ || phase_ > Phase::Ending) return;
  if (!services_ || journal_->open_requests() == 0) return finish();
  const auto give_up_at = os::EventLoop::Clock::now() + kDrainLimit;
  drain_timer_ = loop_.every(std::chrono::milliseconds(5), [this, give_up_at] {
    if (journal_->open_requests() == 0 || os::EventLoop::Clock::now() >= give_up_at) finish();
  });
}

// Nothing runs in it any more, and from here on nothing goes through the gate: what shares its network might.
void Session::finish() {
  if (phase_ > Phase::Ending) return;
  phase_ = Phase::Closing;
  for (auto* timer : {&drain_timer_, &start_timer_}) {
    if (*timer) loop_.cancel(**timer);
    timer->reset();
  }
  regrant_.end();
  commands_.when_none_runs(nullptr);
  commands_.end_all({Reason::SessionEnded, "the sandbox has ended"});
  if (!services_) return bring_back_commits();
  services_->stop([this] {
    journal_->end_open_requests({Reason::SessionEnded, "the session ended"});
    bring_back_commits();
  });
}

void Session::bring_back_commits() {
  if (!clone_holds_work_) return look_last();
  private_git_->bring_back([this](const std::vector<std::string>& lines) {
    for (const std::string& line : lines) callbacks_.on_notice(line);
    look_last();
  });
}

// The last word on what the sandbox left behind.
void Session::look_last() {
  if (!workspace_looks_) return conclude();
  workspace_looks_->look_last([this] { conclude(); });
}

void Session::conclude() {
  phase_ = Phase::Over;
  if (journal_) journal_->tell_coalesced();
  if (start_recorded_) {
    const std::string how = request_.command.empty() ? "stopped" : fmt::format("exit code {}", exit_code_);
    (void)journal_->append(session_end(failure_, how));
  }
  if (failure_) return callbacks_.on_failed(failure_text(*failure_));
  callbacks_.on_finished(exit_code_, journal_->summary().line());
}

}  // namespace sallyport::session
