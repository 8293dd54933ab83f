// The sessions of a daemon: each has a name, an owner, and a request by which it can be started again;
// whoever calls for one follows it until it runs, or has ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/api_error.h"
#include "control/lifetime.h"
#include "os/event_loop.h"
#include "session/gateway.h"
#include "session/session.h"

namespace sallyport::control {

// Of a daemon, and of one user. Those that have ended count, until they are destroyed.
inline constexpr std::size_t kMaxSessions = 4096;
inline constexpr std::size_t kMaxSessionsPerUser = 1024;
inline constexpr std::size_t kMaxNameBytes = 64;
// Of one session, for those who ask later: the last ones.
inline constexpr std::size_t kMaxNotices = 32;
// An id may be given by its first characters, so many at least.
inline constexpr std::size_t kMinIdPrefix = 4;

enum class SessionState : std::uint8_t { Starting, Running, Stopping, Ended };
std::string_view name(SessionState state);

// Whose sessions a caller may see and end: its own, or everybody's.
struct Viewer {
  uid_t uid;
  bool sees_all = false;
};

class Sessions {
 public:
  struct Entry;

  // Told what becomes of a session, until it is `until`: Running, or Ended.
  struct Follower {
    SessionState until = SessionState::Running;
    std::function<void(const std::string& text)> on_notice;
    // Last. An error: it ended without having run.
    std::function<void(const Status&, const Entry&)> on_done;
  };
  // Of an end that nobody waits for.
  static Follower nobody();

  struct Entry {
    std::string name;
    uid_t owner = 0;
    session::Request request;
    Lifetime lifetime;
    SessionState state = SessionState::Ended;
    std::string id;  // of the present session, or the last; as in the audit log
    std::chrono::system_clock::time_point started;
    BootClock::time_point booted;  // the same moment
    std::optional<BootClock::time_point> last_use;
    std::uint64_t uses = 0;
    std::optional<os::EventLoop::TimerId> lifetime_timer;
    std::deque<std::string> notices;
    std::string last_word;                      // of the last session: what it did, or why it ended
    std::unique_ptr<session::Session> session;  // unless it has ended
    // Goes with its session's end: since destroy(), and until it has run for the first time.
    bool passing = true;
    bool destroyed = false;
    std::vector<Follower> followers;
  };

  // The gateway runs.
  Sessions(os::EventLoop& loop, session::Gateway& gateway) : loop_(loop), gateway_(gateway) {}
  ~Sessions();
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // A new one, to be started. `name` "": one is made of the workspace's.
  Result<Entry*> add(uid_t owner, std::string name, session::Request request, Lifetime lifetime = {});
  // By name, by id or by the id's beginning. 404 when there is none that the viewer may see.
  ApiResult<Entry*> find(const Viewer& viewer, std::string_view key);
  // The owner's of that name, the eldest, which may be one that is being destroyed; nullptr: none.
  Entry* find_named(uid_t owner, std::string_view name) const;
  // The one whose present session that is; nullptr when it has ended.
  session::Session* present(std::string_view id) const;
  std::vector<const Entry*> list(const Viewer& viewer) const;

  // One that is new, or has ended. An error: it is neither, and the follower hears nothing. A new one that
  // cannot be started is gone when its follower has been told.
  Status start(Entry& entry, Follower follower);
  // Its end, which one that has ended has reached.
  void stop(Entry& entry, Follower follower);
  // Its end, after which it is no more.
  void destroy(Entry& entry, Follower follower);

  // Its files read again, of one that has not ended.
  using OnReloaded = std::function<void(const Entry&, const session::Regranted&)>;
  static void reload(Entry& entry, OnReloaded on_reloaded);
  void reload_all(const OnReloaded& on_reloaded);

  // Ends all, and lets none start any more.
  void end_all(std::function<void()> on_ended);

  std::size_t running() const;

 private:
  Status check_name(uid_t owner, const std::string& name) const;
  std::string make_name(uid_t owner, const std::string& workspace) const;
  std::vector<Entry*> live() const;
  void on_notice(Entry& entry, std::string text);
  void on_running(Entry& entry);
  void look_at_lifetime(Entry& entry);
  void on_end(Entry& entry, Status how, std::string last_word);
  void bury(std::unique_ptr<session::Session> session);
  void erase(const Entry& entry);

  os::EventLoop& loop_;
  session::Gateway& gateway_;
  std::vector<std::unique_ptr<Entry>> entries_;
  // Ended, in one of whose callbacks we may be.
  std::vector<std::unique_ptr<session::Session>> buried_;
  std::optional<os::EventLoop::TimerId> burial_;
  std::function<void()> on_all_ended_;  // since end_all()
};

}  // namespace sallyport::control
