// Containers that others start: one with our label asks for a session of its own and waits, sealed, until it
// has one; one that joins a sandbox's network must be as sealed as that is.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "container/host.h"
#include "control/sessions.h"
#include "engine/events.h"
#include "os/event_loop.h"
#include "session/places.h"

namespace sallyport::control {

// Its value is the absolute path of a policy.
inline constexpr char kPolicyLabel[] = "org.sallyport.policy";
// Until an engine that could not be asked is asked again, before its events can be followed.
inline constexpr std::chrono::milliseconds kEngineRetryInterval{5'000};

class Newcomers {
 public:
  using Log = std::function<void(const std::string& line)>;

  // All outlive this.
  Newcomers(os::EventLoop& loop, container::Host& host, Sessions& sessions, session::Places places, Log log)
      : loop_(loop), host_(host), sessions_(sessions), places_(std::move(places)), log_(std::move(log)) {}
  Newcomers(const Newcomers&) = delete;
  Newcomers& operator=(const Newcomers&) = delete;
  ~Newcomers();

  // From now on the engine is followed, whenever there is one.
  void begin();

 private:
  void follow();
  void on_event(const engine::Event& event);
  void look_at_all();
  bool may_matter(const engine::ListedContainer& container) const;
  bool is_ours(const std::map<std::string, std::string>& labels) const;
  void look_at(const std::string& container);
  void on_state(const engine::ContainerState& state);
  void adopt(const engine::ContainerState& state, const std::string& policy);
  void succeed(Sessions::Entry& earlier, const engine::ContainerState& state, const std::string& policy);
  void start(Sessions::Entry& entry, const std::string& name);
  void judge_joiner(const engine::ContainerState& state, const std::string& holder);
  void welcome(const engine::ContainerState& state, const std::string& holder);
  void stop(const engine::ContainerState& state, const std::string& why);

  os::EventLoop& loop_;
  container::Host& host_;
  Sessions& sessions_;
  session::Places places_;
  Log log_;
  engine::Call call_;
  std::optional<os::EventLoop::TimerId> retry_;
  std::optional<engine::Events> events_;
  std::map<std::string, engine::Call> looks_;  // by container
  std::map<std::string, engine::Call> kills_;
  // By container, the start of it
  std::map<std::string, std::string> begun_;     // at which it was given a session
  std::map<std::string, std::string> welcomed_;  // at which a joiner was given our files
};

}  // namespace sallyport::control
