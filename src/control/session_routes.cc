#include "control/session_routes.h"

#include <fcntl.h>
#include <signal.h>

#include <array>
#include <boost/json.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "audit/json.h"
#include "base/text.h"
#include "control/log_stream.h"
#include "control/session_request.h"

namespace sallyport::control {
namespace {

namespace json = boost::json;

// Shared by the callbacks of a call that is answered bit by bit.
using SharedAnswer = std::shared_ptr<Answer>;

json::value to_json(const Sessions::Entry& entry) {
  json::object object{{"name", entry.name},
                      {"id", entry.id},
                      {"owner", entry.owner},
                      {"state", name(entry.state)},
                      {"workspace", entry.request.working_directory},
                      {"policy", entry.request.sources.policy_path},
                      {"image", entry.request.image},
                      {"container", entry.request.adopted},
                      {"private_git", entry.request.private_git},
                      {"started", audit::time_text(entry.started)},
                      {"commands", entry.session ? entry.session->commands().running() : 0},
                      {"audit_log", shown(entry.request.audit_path)}};
  const audit::Summary* summary = entry.session ? entry.session->summary() : nullptr;
  object["summary"] = summary != nullptr ? shown(summary->line()) : shown(entry.last_word);
  if (entry.lifetime.ttl) object["ttl_seconds"] = entry.lifetime.ttl->count();
  if (entry.lifetime.idle) object["idle_seconds"] = entry.lifetime.idle->count();
  if (entry.request.max_uses) {
    object["max_uses"] = *entry.request.max_uses;
    object["uses"] = entry.session ? entry.session->credential_uses() : 0;
  }
  json::array notices;
  for (const std::string& notice : entry.notices) notices.push_back(shown(notice));
  object["notices"] = std::move(notices);
  return object;
}

json::value to_json(const Sessions::Entry& entry, const session::Regranted& done) {
  json::array changes;
  for (const std::string& change : done.changes) changes.push_back(shown(change));
  return json::object{{"name", entry.name},
                      {"id", entry.id},
                      {"owner", entry.owner},
                      {"changes", std::move(changes)},
                      {"problem", shown(done.problem)}};
}

class SessionRoutes {
 public:
  SessionRoutes(os::EventLoop& loop, Sessions& sessions, const ApiAccess& access, session::Places places)
      : loop_(loop), sessions_(sessions), access_(access), places_(std::move(places)) {}

  void create(Call& call, Answer answer) {
    if (!access_.is_master(call.peer.uid) && access_.owner != 0) {
      return answer.refuse({403, "other_user",
                            "This daemon is no root, so it makes sessions for root and for its own user "
                            "alone: it would look at the workspace with its own rights, and not with yours.",
                            "Run a daemon of your own: `sallyport gateway start`."});
    }
    auto wanted = read_new_session(call.body, places_);
    if (!wanted) return answer.refuse(wanted.error());
    if (!wanted->request.adopted.empty() && !access_.is_master(call.peer.uid)) {
      return answer.refuse({403, "other_user", "Containers that others made are adopted by root alone."});
    }
    wanted->request.client = client(call.peer);
    auto entry =
        sessions_.add(call.peer.uid, std::move(wanted->name), std::move(wanted->request), wanted->lifetime);
    if (!entry) return answer.refuse(entry.error());
    const auto shared = std::make_shared<Answer>(std::move(answer));
    // Whoever wanted it is gone before it runs: nobody would know of it.
    shared->when_gone([this, owner = (*entry)->owner, name = (*entry)->name] {
      if (auto left = sessions_.find({.uid = owner}, name)) sessions_.destroy(**left, Sessions::nobody());
    });
    start_entry(**entry, shared);
  }

  void list(Call& call, Answer answer) {
    json::array all;
    for (const Sessions::Entry* entry : sessions_.list(viewer(call))) all.push_back(to_json(*entry));
    answer.send(200, json::object{{"sessions", std::move(all)}});
  }

  void show(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    answer.send(200, to_json(**entry));
  }

  void start(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    // Whoever has it started again, it is its owner's; who may have other groups by now.
    if ((*entry)->owner == call.peer.uid) (*entry)->request.client = client(call.peer);
    start_entry(**entry, std::make_shared<Answer>(std::move(answer)));
  }

  void stop(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    sessions_.stop(**entry, follower(SessionState::Ended, std::make_shared<Answer>(std::move(answer))));
  }

  void destroy(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    sessions_.destroy(**entry, follower(SessionState::Ended, std::make_shared<Answer>(std::move(answer))));
  }

  // Of all whose sessions run and the caller may see.
  void reload_all(Call& call, Answer answer) {
    std::vector<Sessions::Entry*> live;
    for (const Sessions::Entry* entry : sessions_.list(viewer(call))) {
      if (entry->session) live.push_back(*sessions_.find({.uid = entry->owner}, entry->name));
    }
    reload_these(live, std::move(answer));
  }

  void reload(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    if (!(*entry)->session) return answer.refuse(not_running(**entry));
    reload_these({*entry}, std::move(answer));
  }

  void exec(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    // A command has the owner's rights over the workspace, and whatever credentials are the owner's to use.
    if ((*entry)->owner != call.peer.uid && !access_.is_master(call.peer.uid)) {
      return answer.refuse({403, "other_user",
                            "The session '" + (*entry)->name +
                                "' is another user's: its commands would have "
                                "that user's rights.",
                            "Make one of your own: `sallyport new`."});
    }
    auto command = read_command(call.body);
    if (!command) return answer.refuse(command.error());
    if (call.descriptors.size() != 3) {
      return answer.refuse(
          {400, "bad_request",
           "This call takes three descriptors: a command's standard input, output and error."});
    }
    if (!(*entry)->session) {
      return answer.refuse(not_running(**entry));
    }
    run(*(*entry)->session, *command, std::move(call.descriptors),
        std::make_shared<Answer>(std::move(answer)));
  }

  // Lines of the audit log: the daemon's file, of which a caller sees what is about its own session.
  void log(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    LogStream::Wish wish{.session = (*entry)->id};
    if (const auto lines = call.query.find("lines"); lines != call.query.end()) {
      const auto number = parse_decimal(lines->second, kMaxLogLines);
      if (!number) return answer.refuse({400, "bad_request", "lines: must be a number, up to 10000"});
      wish.lines = *number;
    }
    if (const auto follow = call.query.find("follow"); follow != call.query.end()) {
      if (follow->second != "1") return answer.refuse({400, "bad_request", "follow: must be 1"});
      wish.follow = true;
    }
    const std::string& path = (*entry)->request.audit_path;
    Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file) return answer.refuse(fail_errno(Reason::Internal, "open " + path).error());
    LogStream::start(
        loop_, std::move(file), wish, [this, id = wish.session] { return sessions_.present(id) != nullptr; },
        std::move(answer));
  }

  void signal(Call& call, Answer answer) {
    auto entry = find(call);
    if (!entry) return answer.refuse(entry.error());
    auto number = read_signal(call.body);
    if (!number) return answer.refuse(number.error());
    const auto command = parse_decimal(call.path.at("command"), UINT32_MAX);
    if (!command) return answer.refuse({400, "bad_request", "A command is named by its number."});
    if ((*entry)->session)
      (*entry)->session->commands().signal(static_cast<std::uint32_t>(*command), *number);
    answer.send(200, json::object{});
  }

 private:
  // Notices as they come, then the session.
  static Sessions::Follower follower(SessionState until, const SharedAnswer& answer) {
    return {.until = until,
            .on_notice = [answer](const std::string& text) { answer->line({{"notice", shown(text)}}); },
            .on_done =
                [answer](const Status& status, const Sessions::Entry& entry) {
                  if (!status) return answer->fail({503, "session_ended", status.error().detail});
                  answer->line({{"session", to_json(entry)}});
                  answer->end();
                }};
  }

  static ApiError not_running(const Sessions::Entry& entry) {
    return {409, "not_running", "The session '" + entry.name + "' does not run.",
            "Start it: `sallyport start " + entry.name + "`."};
  }

  // Answered when the last of them is done.
  static void reload_these(const std::vector<Sessions::Entry*>& entries, Answer answer) {
    struct Reloads {
      Answer answer;
      std::size_t left;
      json::array sessions;
    };
    const auto reloads = std::make_shared<Reloads>(Reloads{std::move(answer), entries.size(), {}});
    if (entries.empty()) reloads->answer.send(200, json::object{{"sessions", json::array()}});
    for (Sessions::Entry* entry : entries) {
      Sessions::reload(*entry, [reloads](const Sessions::Entry& each, const session::Regranted& done) {
        reloads->sessions.push_back(to_json(each, done));
        if (--reloads->left > 0) return;
        reloads->answer.send(200, json::object{{"sessions", std::move(reloads->sessions)}});
      });
    }
  }

  void start_entry(Sessions::Entry& entry, const SharedAnswer& answer) {
    auto status = sessions_.start(entry, follower(SessionState::Running, answer));
    if (!status) answer->refuse(status.error());
  }

  // A command whose caller is gone is nobody's: it is killed.
  void run(session::Session& session, const session::Command& command, std::vector<Fd> descriptors,
           const SharedAnswer& answer) {
    const auto number = std::make_shared<session::Commands::Id>();
    auto started = session.exec(
        command, std::array{std::move(descriptors[0]), std::move(descriptors[1]), std::move(descriptors[2])},
        {.on_started = [answer, number] { answer->line({{"command", *number}}); },
         .on_exited =
             [answer](int exit_code) {
               answer->line({{"exit_code", exit_code}});
               answer->end();
             },
         .on_failed =
             [answer](const Error& error) {
               // The reason's own advice is for requests inside.
               answer->fail({info(error.reason).status, std::string(code(error.reason)), error.detail});
             }});
    if (!started) return answer->refuse(started.error());
    *number = *started;
    answer->when_gone([this, id = session.id(), command = *started] {
      if (session::Session* present = sessions_.present(id)) present->commands().signal(command, SIGKILL);
    });
  }

  // By whose rights a session is made; nullopt: by the daemon's own.
  std::optional<os::Ids> client(const os::Peer& peer) const {
    if (access_.is_master(peer.uid)) return std::nullopt;
    return os::Ids{.uid = peer.uid, .gid = peer.gid, .groups = peer.groups};
  }
  Viewer viewer(const Call& call) const {
    return {.uid = call.peer.uid, .sees_all = access_.allows(call.peer)};
  }
  ApiResult<Sessions::Entry*> find(const Call& call) const {
    return sessions_.find(viewer(call), call.path.at("session"));
  }

  os::EventLoop& loop_;
  Sessions& sessions_;
  const ApiAccess& access_;
  session::Places places_;
};

}  // namespace

std::vector<Route> session_routes(os::EventLoop& loop, Sessions& sessions, const ApiAccess& access,
                                  session::Places places) {
  const auto calls = std::make_shared<SessionRoutes>(loop, sessions, access, std::move(places));
  const auto to = [&](auto method) {
    return
        [calls, method](Call&& call, Answer answer) { std::invoke(method, *calls, call, std::move(answer)); };
  };
  const std::string one = "/v1/sessions/{session}";
  std::vector<Route> routes;
  routes.push_back({.method = "POST",
                    .pattern = "/v1/sessions",
                    .handler = to(&SessionRoutes::create),
                    .max_body_bytes = kMaxLargeBodyBytes});
  routes.push_back({.method = "GET", .pattern = "/v1/sessions", .handler = to(&SessionRoutes::list)});
  routes.push_back({.method = "GET", .pattern = one, .handler = to(&SessionRoutes::show)});
  routes.push_back({.method = "DELETE", .pattern = one, .handler = to(&SessionRoutes::destroy)});
  routes.push_back({.method = "POST", .pattern = one + "/start", .handler = to(&SessionRoutes::start)});
  routes.push_back({.method = "POST", .pattern = one + "/stop", .handler = to(&SessionRoutes::stop)});
  routes.push_back({.method = "GET",
                    .pattern = one + "/log",
                    .handler = to(&SessionRoutes::log),
                    .query = {"lines", "follow"}});
  routes.push_back({.method = "POST", .pattern = one + "/reload", .handler = to(&SessionRoutes::reload)});
  routes.push_back({.method = "POST", .pattern = "/v1/reload", .handler = to(&SessionRoutes::reload_all)});
  routes.push_back({.method = "POST",
                    .pattern = one + "/exec",
                    .handler = to(&SessionRoutes::exec),
                    .max_body_bytes = kMaxLargeBodyBytes,
                    .max_descriptors = 3});
  routes.push_back({.method = "POST",
                    .pattern = one + "/commands/{command}/signal",
                    .handler = to(&SessionRoutes::signal)});
  return routes;
}

}  // namespace sallyport::control
