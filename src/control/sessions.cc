#include "control/sessions.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/random.h"
#include "base/text.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kNameSuffixBytes = 2;
constexpr std::size_t kIdCharacters = 32;
constexpr std::size_t kMaxMadeNameBytes = 32;  // of the workspace's own name, in one that is made

bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

bool is_name_char(char c) {
  return is_alnum(c) || c == '-' || c == '_' || c == '.';
}

// What a session without a command of its own has as standard descriptors.
Result<std::array<Fd, 3>> nothing_to_read_or_hear() {
  std::array<Fd, 3> stdio;
  for (Fd& fd : stdio) {
    fd = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!fd) return fail_errno(Reason::Internal, "/dev/null");
  }
  return stdio;
}

bool may_see(const Viewer& viewer, const Sessions::Entry& entry) {
  return !entry.destroyed && (viewer.sees_all || viewer.uid == entry.owner);
}

}  // namespace

std::string_view name(SessionState state) {
  switch (state) {
    case SessionState::Starting:
      return "starting";
    case SessionState::Running:
      return "running";
    case SessionState::Stopping:
      return "stopping";
    case SessionState::Ended:
      return "ended";
  }
  return "";
}

Sessions::Follower Sessions::nobody() {
  return {.until = SessionState::Ended, .on_notice = nullptr, .on_done = [](const Status&, const Entry&) {}};
}

Sessions::~Sessions() {
  if (burial_) loop_.cancel(*burial_);
  for (const auto& entry : entries_) {
    if (entry->lifetime_timer) loop_.cancel(*entry->lifetime_timer);
  }
}

Result<Sessions::Entry*> Sessions::add(uid_t owner, std::string name, session::Request request,
                                       Lifetime lifetime) {
  if (on_all_ended_) return fail(Reason::SessionEnded, "the daemon is ending");
  const auto of_owner =
      std::ranges::count_if(entries_, [&](const auto& entry) { return entry->owner == owner; });
  if (entries_.size() >= kMaxSessions || static_cast<std::size_t>(of_owner) >= kMaxSessionsPerUser) {
    return fail(Reason::TooMany, fmt::format("there are {} sessions, {} of them yours: destroy some first",
                                             entries_.size(), of_owner));
  }
  if (name.empty()) name = make_name(owner, request.working_directory);
  if (auto status = check_name(owner, name); !status) return fail(std::move(status));
  Entry& entry = *entries_.emplace_back(std::make_unique<Entry>());
  entry.name = std::move(name);
  entry.owner = owner;
  entry.request = std::move(request);
  entry.lifetime = lifetime;
  return &entry;
}

Status Sessions::check_name(uid_t owner, const std::string& name) const {
  if (name.size() == kIdCharacters && std::ranges::all_of(name, is_hex)) {
    return fail(Reason::BadRequest, "a name may not look like an id");
  }
  if (name.size() > kMaxNameBytes || !is_alnum(name.front()) || !std::ranges::all_of(name, is_name_char)) {
    return fail(
        Reason::BadRequest,
        fmt::format("'{}' is no name: it wants up to {} letters, digits, '.', '_' and '-', and a letter "
                    "or digit first",
                    name, kMaxNameBytes));
  }
  // The name of one that is being destroyed is free: nobody sees it any more.
  const bool taken = std::ranges::any_of(entries_, [&](const auto& entry) {
    return entry->owner == owner && entry->name == name && !entry->destroyed;
  });
  if (!taken) return {};
  return fail(Reason::BadRequest, fmt::format("there is a session '{}' already", name));
}

std::string Sessions::make_name(uid_t owner, const std::string& workspace) const {
  std::string base;
  for (const char c : workspace.substr(workspace.rfind('/') + 1)) {
    if (base.size() < kMaxMadeNameBytes && (is_alnum(c) || (!base.empty() && is_name_char(c)))) base += c;
  }
  if (base.empty()) base = "session";
  std::string name;
  do {
    name = base + "-" + random_hex(kNameSuffixBytes);
  } while (find_named(owner, name) != nullptr);
  return name;
}

Sessions::Entry* Sessions::find_named(uid_t owner, std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry->owner == owner && entry->name == name) return entry.get();
  }
  return nullptr;
}

ApiResult<Sessions::Entry*> Sessions::find(const Viewer& viewer, std::string_view key) {
  std::vector<Entry*> found;
  if (key.empty()) return refuse(404, "no_such_session", "a session has a name");
  // The viewer's own is meant, or somebody else's of the same name would stand in its way.
  for (const auto& entry : entries_) {
    if (entry->owner == viewer.uid && entry->name == key && may_see(viewer, *entry)) return entry.get();
  }
  for (const auto how : {&Entry::name, &Entry::id}) {
    const bool by_id = how == &Entry::id;
    for (const auto& entry : entries_) {
      const std::string& own = (*entry).*how;
      const bool fits = own == key || (by_id && key.size() >= kMinIdPrefix && own.starts_with(key));
      if (fits && may_see(viewer, *entry)) found.push_back(entry.get());
    }
    if (found.size() == 1) return found.front();
    if (!found.empty()) break;
  }
  if (found.empty()) {
    return refuse(404, "no_such_session", fmt::format("there is no session '{}'", key),
                  "`sallyport list` shows those that there are.");
  }
  return refuse(400, "bad_request", fmt::format("'{}' can be {} sessions", key, found.size()),
                "Give one's whole id: `sallyport list --json` has them.");
}

session::Session* Sessions::present(std::string_view id) const {
  const auto found = std::ranges::find_if(entries_, [&](const auto& entry) { return entry->id == id; });
  return found == entries_.end() ? nullptr : (*found)->session.get();
}

std::vector<const Sessions::Entry*> Sessions::list(const Viewer& viewer) const {
  std::vector<const Entry*> result;
  for (const auto& entry : entries_) {
    if (may_see(viewer, *entry)) result.push_back(entry.get());
  }
  return result;
}

Status Sessions::start(Entry& entry, Follower follower) {
  if (on_all_ended_) return fail(Reason::SessionEnded, "the daemon is ending");
  if (entry.state != SessionState::Ended) {
    return fail(Reason::BadRequest,
                fmt::format("the session '{}' is {}", entry.name, control::name(entry.state)));
  }
  auto stdio = nothing_to_read_or_hear();
  if (!stdio && entry.passing) erase(entry);
  if (!stdio) return fail(std::move(stdio));
  entry.state = SessionState::Starting;
  entry.started = std::chrono::system_clock::now();
  entry.booted = BootClock::now();
  entry.last_use.reset();
  entry.uses = 0;
  entry.notices.clear();
  entry.last_word.clear();
  entry.followers.push_back(std::move(follower));
  entry.session = std::make_unique<session::Session>(
      loop_, gateway_, entry.request, std::move(*stdio),
      session::Session::Callbacks{
          .on_notice = [this, &entry](std::string text) { on_notice(entry, std::move(text)); },
          .on_started = [this, &entry] { on_running(entry); },
          .on_stopped = [] {},  // there is no command of its own
          .on_finished = [this, &entry](int, std::string summary) { on_end(entry, {}, std::move(summary)); },
          .on_failed =
              [this, &entry](const std::string& text) {
                on_end(entry, fail(Reason::SessionEnded, text), text);
              },
      });
  entry.id = entry.session->id();
  entry.session->start();
  return {};
}

void Sessions::on_notice(Entry& entry, std::string text) {
  for (const Follower& follower : entry.followers) {
    if (follower.on_notice) follower.on_notice(text);
  }
  entry.notices.push_back(std::move(text));
  if (entry.notices.size() > kMaxNotices) entry.notices.pop_front();
}

void Sessions::on_running(Entry& entry) {
  if (entry.state != SessionState::Starting) return;
  entry.state = SessionState::Running;
  entry.passing = false;
  std::vector<Follower> ended;
  for (Follower& follower : std::exchange(entry.followers, {})) {
    (follower.until == SessionState::Running ? ended : entry.followers).push_back(std::move(follower));
  }
  if (entry.lifetime.is_limited()) look_at_lifetime(entry);
  for (const Follower& follower : ended) follower.on_done({}, entry);
}

void Sessions::look_at_lifetime(Entry& entry) {
  entry.lifetime_timer.reset();
  const auto now = BootClock::now();
  if (const std::uint64_t uses = entry.session->credentialed_uses(); uses != entry.uses) {
    entry.uses = uses;
    entry.last_use = now;  // or a little before
  }
  const auto left = entry.lifetime.left(now, entry.booted, entry.last_use);
  if (*left <= BootClock::duration(0))
    return entry.session->abandon(entry.lifetime.reason(now, entry.booted));
  const BootClock::duration next = std::min<BootClock::duration>(*left, kLifetimeLook);
  entry.lifetime_timer = loop_.after(next, [this, &entry] { look_at_lifetime(entry); });
}

void Sessions::on_end(Entry& entry, Status how, std::string last_word) {
  entry.state = SessionState::Ended;
  entry.last_word = std::move(last_word);
  if (entry.lifetime_timer) loop_.cancel(*entry.lifetime_timer);
  entry.lifetime_timer.reset();
  if (entry.session) bury(std::move(entry.session));
  if (how) how = fail(Reason::SessionEnded, "it was stopped");
  for (const Follower& follower : std::exchange(entry.followers, {})) {
    follower.on_done(follower.until == SessionState::Ended ? Status() : how, entry);
  }
  if (entry.passing) erase(entry);
  if (on_all_ended_ && running() == 0) on_all_ended_();
}

void Sessions::stop(Entry& entry, Follower follower) {
  if (entry.state == SessionState::Ended) return follower.on_done({}, entry);
  entry.followers.push_back(std::move(follower));
  entry.state = SessionState::Stopping;
  entry.session->stop();
}

void Sessions::destroy(Entry& entry, Follower follower) {
  if (entry.state == SessionState::Ended) {
    follower.on_done({}, entry);
    return erase(entry);
  }
  entry.passing = entry.destroyed = true;
  stop(entry, std::move(follower));
}

// The entry outlives its session, which tells all who wait before it ends.
void Sessions::reload(Entry& entry, OnReloaded on_reloaded) {
  entry.session->reload([&entry, on_reloaded = std::move(on_reloaded)](const session::Regranted& done) {
    on_reloaded(entry, done);
  });
}

void Sessions::reload_all(const OnReloaded& on_reloaded) {
  for (Entry* entry : live()) reload(*entry, on_reloaded);
}

std::vector<Sessions::Entry*> Sessions::live() const {
  std::vector<Entry*> result;
  for (const auto& entry : entries_) {
    if (entry->session) result.push_back(entry.get());
  }
  return result;
}

void Sessions::end_all(std::function<void()> on_ended) {
  on_all_ended_ = std::move(on_ended);
  const std::vector<Entry*> still = live();
  if (still.empty()) return on_all_ended_();
  for (Entry* entry : still) stop(*entry, nobody());
}

std::size_t Sessions::running() const {
  return live().size();
}

// A session ends in a callback of its own.
void Sessions::bury(std::unique_ptr<session::Session> session) {
  buried_.push_back(std::move(session));
  if (burial_) return;
  burial_ = loop_.after(std::chrono::milliseconds(0), [this] {
    burial_.reset();
    buried_.clear();
  });
}

void Sessions::erase(const Entry& entry) {
  std::erase_if(entries_, [&](const auto& kept) { return kept.get() == &entry; });
}

}  // namespace sallyport::control
