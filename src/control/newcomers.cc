#include "control/newcomers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <utility>

#include "base/text.h"
#include "container/sealed.h"
#include "control/session_request.h"
#include "engine/container.h"
#include "engine/host_config.h"

namespace sallyport::control {
namespace {

std::string label(const std::map<std::string, std::string>& labels, const char* name) {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string() : found->second;
}

}  // namespace

Newcomers::~Newcomers() {
  if (retry_) loop_.cancel(*retry_);
}

void Newcomers::begin() {
  host_.on_joinable([this] { look_at_all(); });
  call_ = host_.when_ready([this](const Status& ready) {
    if (ready) return follow();
    retry_ = loop_.after(kEngineRetryInterval, [this] {
      retry_.reset();
      begin();
    });
  });
}

void Newcomers::follow() {
  events_.emplace(host_.client(), engine::Events::Callbacks{
                                      .on_resync = [this] { look_at_all(); },
                                      .on_event = [this](const engine::Event& event) { on_event(event); },
                                      .on_lost = [](const Error&) {},
                                  });
}

void Newcomers::on_event(const engine::Event& event) {
  if (event.kind == engine::EventKind::Start) look_at(event.container);
  if (event.kind == engine::EventKind::Destroy) {
    begun_.erase(event.container);
    welcomed_.erase(event.container);
  }
}

void Newcomers::look_at_all() {
  call_ = host_.engine().list("", [this](const Result<std::vector<engine::ListedContainer>>& all) {
    if (!all) return log_(all.error().detail);
    for (const engine::ListedContainer& container : *all) {
      const bool runs = container.state == "running" || container.state == "paused";
      if (runs && may_matter(container)) look_at(container.id);
    }
  });
}

// There may be a thousand, and a look asks the engine about one.
bool Newcomers::may_matter(const engine::ListedContainer& container) const {
  if (is_ours(container.labels)) return false;
  if (!label(container.labels, kPolicyLabel).empty()) return true;
  const std::string& network = container.network_mode;
  return host_.info().kind != engine::EngineKind::Docker || network.empty() ||
         network.starts_with(engine::kJoinsContainer);
}

// Ours are looked at by those who made them.
bool Newcomers::is_ours(const std::map<std::string, std::string>& labels) const {
  return label(labels, container::kDaemonLabel) == host_.settings().mark &&
         host_.is_live(label(labels, container::kSessionLabel));
}

void Newcomers::look_at(const std::string& container) {
  looks_[container] =
      host_.engine().inspect(container, [this, container](const Result<engine::ContainerState>& state) {
        auto look = looks_.extract(container);
        if (state && state->running) on_state(*state);
      });
}

void Newcomers::on_state(const engine::ContainerState& state) {
  if (is_ours(state.labels)) return;
  if (state.host.network_mode.starts_with(engine::kJoinsContainer)) {
    const auto holder = host_.session_around(static_cast<pid_t>(state.pid));
    if (holder) judge_joiner(state, *holder);
  }
  const std::string policy = label(state.labels, kPolicyLabel);
  if (policy.empty()) return;
  std::string& begun = begun_[state.id];
  // One that has its session already: by us, or by `sallyport adopt`.
  if (begun == state.started_at || (begun.empty() && host_.session_of(state.id))) return;
  begun = state.started_at;
  adopt(state, policy);
}

void Newcomers::adopt(const engine::ContainerState& state, const std::string& policy) {
  if (!policy.starts_with('/')) {
    return stop(state, fmt::format("its label {} is no absolute path", kPolicyLabel));
  }
  if (Sessions::Entry* earlier = sessions_.find_named(::geteuid(), state.name)) {
    return succeed(*earlier, state, policy);
  }
  NewSession wanted = session_for_container(state.id, state.name, policy, places_);
  auto entry = sessions_.add(::geteuid(), std::move(wanted.name), std::move(wanted.request), wanted.lifetime);
  if (!entry) return log_(fmt::format("container {}: {}", escaped(state.name), entry.error().detail));
  start(**entry, state.name);
}

// A container that was started again, or made anew under the same name, whose session's end may be under way.
void Newcomers::succeed(Sessions::Entry& earlier, const engine::ContainerState& state,
                        const std::string& policy) {
  if (earlier.request.adopted.empty()) {
    return log_(fmt::format("container {}: there is a session of that name already", escaped(state.name)));
  }
  if (earlier.state != SessionState::Ended) {
    Sessions::Follower again = Sessions::nobody();
    again.on_done = [this, container = state.id](const Status&, const Sessions::Entry&) {
      begun_.erase(container);
      look_at(container);
    };
    return earlier.followers.push_back(std::move(again));  // not stopped: it may be another container's
  }
  if (earlier.request.adopted == state.id) return start(earlier, state.name);
  sessions_.destroy(earlier, Sessions::nobody());
  adopt(state, policy);
}

void Newcomers::start(Sessions::Entry& entry, const std::string& name) {
  const auto said = [log = log_, name](const std::string& text) {
    log(fmt::format("container {}: {}", escaped(name), text));
  };
  const Status started = sessions_.start(
      entry, {.on_notice = said, .on_done = [said](const Status& status, const Sessions::Entry&) {
                if (!status) said(status.error().detail);
              }});
  if (!started) said(started.error().detail);
}

// What may do more than the sandbox could have changed its network: nothing in it can be trusted any more.
void Newcomers::judge_joiner(const engine::ContainerState& state, const std::string& holder) {
  engine::Demands demands = host_.demands();
  for (const engine::MountState& mount : state.mounts) {
    // Whoever can name volumes speaks to the engine, and needs no way through them.
    if (mount.type == "volume") demands.plain_volumes.insert(mount.name);
  }
  const auto problems = container::flaws(state, demands);
  if (problems.empty()) return welcome(state, holder);
  const std::string why = fmt::format(
      "it joined the network of a sandbox, and is laxer than one may be:\n  {}", fmt::join(problems, "\n  "));
  stop(state, why);
  if (session::Session* session = sessions_.present(holder)) {
    session->raise_alarm(fmt::format("the container {} was stopped: {}", escaped(state.name), why));
  }
}

void Newcomers::welcome(const engine::ContainerState& state, const std::string& holder) {
  session::Session* session = sessions_.present(holder);
  const auto before = welcomed_.find(state.id);
  if (session == nullptr || (before != welcomed_.end() && before->second == state.started_at)) return;
  const auto furnished = session->furnish(static_cast<pid_t>(state.pid));
  if (!furnished) return log_(fmt::format("container {}: {}", escaped(state.name), furnished.error().detail));
  if (*furnished) welcomed_[state.id] = state.started_at;
}

void Newcomers::stop(const engine::ContainerState& state, const std::string& why) {
  log_(fmt::format("container {} was stopped: {}", escaped(state.name), why));
  kills_[state.id] =
      host_.engine().kill(state.id, "KILL", [this, id = state.id, name = state.name](const Status& done) {
        auto kill = kills_.extract(id);
        if (!done)
          log_(fmt::format("container {} could not be stopped: {}", escaped(name), done.error().detail));
      });
}

}  // namespace sallyport::control
