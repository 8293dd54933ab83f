#include "engine/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/fields.h"

namespace sallyport::engine {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

struct Action {
  std::string_view type;
  std::string_view name;
  EventKind kind;
};

// Podman has other words for some.
constexpr std::array kActions{
    Action{"container", "create", EventKind::Create},
    Action{"container", "start", EventKind::Start},
    Action{"container", "pause", EventKind::Pause},
    Action{"container", "unpause", EventKind::Unpause},
    Action{"container", "die", EventKind::Die},
    Action{"container", "died", EventKind::Die},
    Action{"container", "destroy", EventKind::Destroy},
    Action{"container", "remove", EventKind::Destroy},
    Action{"container", "oom", EventKind::OutOfMemory},
    Action{"network", "connect", EventKind::Connect},
    Action{"network", "disconnect", EventKind::Disconnect},
};

std::string attribute(const std::map<std::string, std::string>& attributes, const std::string& name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string() : found->second;
}

Event read_actor(EventKind kind, Fields actor) {
  Event event;
  event.kind = kind;
  event.attributes = actor.text_map("Attributes");
  std::string id = actor.text("ID");
  if (kind == EventKind::Connect || kind == EventKind::Disconnect) {
    event.network_id = std::move(id);
    event.network = attribute(event.attributes, "name");
    event.container = attribute(event.attributes, "container");
    return event;
  }
  event.container = std::move(id);
  event.name = attribute(event.attributes, "name");
  return event;
}

}  // namespace

Result<std::optional<Event>> read_event(std::string_view line) {
  auto document = parse_json(line, "GET /events");
  if (!document) return fail(std::move(document));
  std::string problem;
  Fields fields(*document, problem);
  const std::string type = fields.text("Type");
  const std::string name = fields.text("Action");
  const auto action = std::ranges::find_if(
      kActions, [&](const Action& each) { return each.type == type && each.name == name; });
  std::optional<Event> event;
  if (problem.empty() && action != kActions.end()) {
    event = read_actor(action->kind, fields.object("Actor"));
    event->time_ns = fields.number("timeNano");
  }
  if (problem.empty()) return event;
  return fail(Reason::EngineRefused,
              fmt::format("an event of the container engine makes no sense: {}", problem));
}

Events::Events(Client& client, Callbacks callbacks) : client_(client), callbacks_(std::move(callbacks)) {
  connect();
}

Events::~Events() {
  if (retry_) client_.loop().cancel(*retry_);
  if (gone_ != nullptr) *gone_ = true;
}

template <class Callback, class... Arguments>
bool Events::call(const Callback& callback, const Arguments&... arguments) {
  bool gone = false;
  gone_ = &gone;
  const Callback copy = callback;  // outlives this
  if (copy) copy(arguments...);
  if (!gone) gone_ = nullptr;
  return !gone;
}

void Events::connect() {
  retry_.reset();
  // Which of them are told is chosen here: engines do not agree on the words to choose by.
  std::string target = "/events?filters=" + encoded(R"({"type":["container","network"]})");
  // One second more than needed: two that happen at once may be told in either order.
  if (last_time_ns_ > 0) target += fmt::format("&since={}", last_time_ns_ / kNanosecondsPerSecond - 1);
  Request request;
  request.target = std::move(target);
  Listener listener;
  listener.on_open = [this] { open(); };
  listener.on_bytes = [this](const std::string& bytes) { take(bytes); };
  listener.on_end = [this](const Error& error) { lose(error); };
  call_ = client_.stream(std::move(request), std::move(listener));
}

void Events::open() {
  back_off_ = kMinReconnectInterval;
  line_.clear();
  skipping_ = false;
  call(callbacks_.on_resync);
}

void Events::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!skipping_ && line_.size() + part.size() > kMaxEventBytes) {
      skipping_ = true;
      line_.clear();
    }
    if (!skipping_) line_ += part;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    const bool skipped = std::exchange(skipping_, false);
    const std::string line = std::exchange(line_, {});
    if (!(skipped ? call(callbacks_.on_resync) : take_line(line))) return;
  }
}

bool Events::take_line(std::string_view line) {
  line = trimmed(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
  if (line.empty()) return true;
  const auto event = read_event(line);
  // What it was is not known, so what it changed is looked up.
  if (!event) return call(callbacks_.on_resync);
  if (!*event || seen(**event)) return true;
  return call(callbacks_.on_event, **event);
}

bool Events::seen(const Event& event) {
  std::string key = fmt::format("{} {} {} {}", event.time_ns, std::to_underlying(event.kind), event.container,
                                event.network_id);
  if (std::ranges::find(remembered_, key) != remembered_.end()) return true;
  if (remembered_.size() >= kMaxRememberedEvents) remembered_.pop_front();
  remembered_.push_back(std::move(key));
  last_time_ns_ = std::max(last_time_ns_, event.time_ns);
  return false;
}

void Events::lose(const Error& error) {
  retry_ = client_.loop().after(back_off_, [this] { connect(); });
  back_off_ = std::min(back_off_ * 2, kMaxReconnectInterval);
  call(callbacks_.on_lost, error);
}

}  // namespace sallyport::engine
