// The control API's server: who may connect, how many at once, and which handler a call goes to. Carries
// calls; what they do is their handlers' business.
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/slots.h"
#include "control/api_call.h"
#include "control/http_connection.h"
#include "control/router.h"
#include "os/event_loop.h"
#include "os/peer.h"

namespace sallyport::control {

// Connections whose request is still to come, of one user and of all; root and the daemon's own user are not
// counted among all, so that others cannot keep them out. Past them: 429, unread.
inline constexpr std::size_t kMaxConnectionsPerUser = 16;
inline constexpr std::size_t kMaxConnections = 64;
// Calls under way, streams among them.
inline constexpr std::size_t kMaxCallsPerUser = 256;
inline constexpr std::size_t kMaxCalls = 1024;
inline constexpr int kMaxControlAcceptsPerTurn = 32;
// Without descriptors left nothing can be accepted; nor would poll(2) wait.
inline constexpr std::chrono::seconds kAcceptBackOff{1};

// Who may use the API: root, the owner, and the members of a group.
struct ApiAccess {
  uid_t owner = 0;
  std::optional<gid_t> operators;

  bool allows(const os::Peer& peer) const;
  // Root, or the owner.
  bool is_master(uid_t uid) const { return uid == 0 || uid == owner; }
};

struct Route {
  using Handler = std::function<void(Call, Answer)>;

  std::string method;
  std::string pattern;
  Handler handler;
  std::vector<std::string> query = {};  // the names that its query may have
  std::size_t max_body_bytes = kMaxBodyBytes;
  std::size_t max_descriptors = 0;
};

class ApiServer {
 public:
  // For the audit log and metrics; each may be empty.
  struct Observer {
    // Closed before a byte was read: why. kOverflowUid where the peer's uid is not known.
    std::function<void(uid_t, const Error&)> on_peer_refused;
    // A call is over, however it ended. `status` is 0 when the peer went before there was an answer.
    std::function<void(const os::Peer&, const std::string& request_id, const std::string& call, int status)>
        on_call;
    // A handler threw: a mistake of ours, which the caller is told as such.
    std::function<void(const std::string& request_id, const std::string& what)> on_mistake;
  };

  ApiServer(os::EventLoop& loop, ApiAccess access, std::vector<Route> routes, Observer observer,
            HttpTimes times = {});
  // Closes all connections: who waits in when_gone() is told.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Serves a listening, non-blocking socket, which outlives this.
  void listen(int listener);
  // One connection, judged by its peer.
  void accept(Fd connection);
  // The same for a peer that was judged.
  void serve(Fd connection, os::Peer peer);

  std::size_t connections() const { return connections_.size(); }
  std::vector<RouteName> route_names() const { return names_; }

 private:
  struct Connection;
  using Id = std::uint64_t;

  void accept_all();
  void pause_listening();
  void too_many(Fd connection, const os::Peer& peer);
  ApiResult<std::size_t> on_head(Id id, const HttpRequest& request);
  void on_request(Id id, HttpRequest request, const std::string& body, std::vector<Fd> fds);
  void on_closed(Id id, int status);
  void refuse(Connection& connection, const ApiError& error);

  os::EventLoop& loop_;
  ApiAccess access_;
  std::vector<Route> routes_;
  std::vector<RouteName> names_;
  Observer observer_;
  HttpTimes times_;
  int listener_ = -1;
  std::optional<os::EventLoop::TimerId> pause_;
  Id next_id_ = 1;
  SlotsFor<uid_t> reading_of_user_{kMaxConnectionsPerUser};
  Slots reading_{kMaxConnections};
  SlotsFor<uid_t> calls_of_user_{kMaxCallsPerUser};
  Slots calls_{kMaxCalls};
  std::map<Id, Connection> connections_;
};

}  // namespace sallyport::control
