#include "control/api_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "base/random.h"
#include "base/text.h"
#include "control/json_reader.h"
#include "os/unix_socket.h"

namespace sallyport::control {
namespace {

constexpr std::size_t kRequestIdBytes = 8;

ApiError too_many_error(std::string_view what) {
  return to_api_error(
      Error{Reason::TooMany, fmt::format("Too many {} at once: try again when some have ended.", what)});
}

}  // namespace

struct ApiServer::Connection {
  os::Peer peer;
  std::string request_id;
  std::string call;  // for the observer
  RouteMatch route;
  std::optional<SlotsFor<uid_t>::Slot> of_user;  // until the request is here
  std::optional<Slots::Slot> of_all;
  std::optional<SlotsFor<uid_t>::Slot> call_of_user;
  std::optional<Slots::Slot> call_of_all;
  std::shared_ptr<HttpConnection> http;
};

bool ApiAccess::allows(const os::Peer& peer) const {
  if (peer.uid == os::kOverflowUid) return false;
  if (peer.uid == 0 || peer.uid == owner) return true;
  return operators &&
         (peer.gid == *operators || std::ranges::find(peer.groups, *operators) != peer.groups.end());
}

ApiServer::ApiServer(os::EventLoop& loop, ApiAccess access, std::vector<Route> routes, Observer observer,
                     HttpTimes times)
    : loop_(loop),
      access_(access),
      routes_(std::move(routes)),
      observer_(std::move(observer)),
      times_(times) {
  for (const Route& route : routes_) names_.push_back({route.method, route.pattern});
}

ApiServer::~ApiServer() {
  if (pause_) loop_.cancel(*pause_);
  if (listener_ >= 0) loop_.unwatch(listener_);
  while (!connections_.empty()) {
    const auto http = connections_.begin()->second.http;
    http->close();
  }
}

void ApiServer::listen(int listener) {
  listener_ = listener;
  loop_.watch(listener_, POLLIN, [this](short) { accept_all(); });
}

void ApiServer::accept_all() {
  for (int i = 0; i < kMaxControlAcceptsPerTurn; ++i) {
    Fd connection(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
      accept(std::move(connection));
    } else if (os::would_block(errno)) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return pause_listening();
    }
  }
}

void ApiServer::pause_listening() {
  loop_.unwatch(listener_);
  pause_ = loop_.after(kAcceptBackOff, [this] {
    pause_.reset();
    listen(listener_);
  });
}

void ApiServer::accept(Fd connection) {
  auto peer = os::accepted_peer(connection.get());
  if (!peer) {
    if (observer_.on_peer_refused) observer_.on_peer_refused(os::kOverflowUid, peer.error());
    return;
  }
  if (!access_.allows(*peer)) {
    const Error why{Reason::OtherUser,
                    fmt::format("uid {} is neither root, nor the owner, nor an operator", peer->uid)};
    if (observer_.on_peer_refused) observer_.on_peer_refused(peer->uid, why);
    return;
  }
  serve(std::move(connection), std::move(*peer));
}

void ApiServer::serve(Fd connection, os::Peer peer) {
  auto of_user = reading_of_user_.take(peer.uid);
  auto of_all = access_.is_master(peer.uid) ? std::nullopt : reading_.take();
  if (!of_user || (!of_all && !access_.is_master(peer.uid))) return too_many(std::move(connection), peer);
  const Id id = next_id_++;
  auto http = HttpConnection::start(
      loop_, std::move(connection),
      {.on_head = [this, id](const HttpRequest& request) { return on_head(id, request); },
       .on_request = [this, id](
                         HttpRequest request, const std::string& body,
                         std::vector<Fd> fds) { on_request(id, std::move(request), body, std::move(fds)); },
       .on_bad_request = [this, id](const ApiError& error) { refuse(connections_.at(id), error); },
       .on_closed = [this, id](int status) { on_closed(id, status); }},
      times_);
  connections_.emplace(id, Connection{.peer = std::move(peer),
                                      .request_id = random_hex(kRequestIdBytes),
                                      .call = "",
                                      .route = {},
                                      .of_user = std::move(of_user),
                                      .of_all = std::move(of_all),
                                      .call_of_user = std::nullopt,
                                      .call_of_all = std::nullopt,
                                      .http = std::move(http)});
}

// Without a word of its request being read, and without waiting: what does not fit the socket is lost.
void ApiServer::too_many(Fd connection, const os::Peer& peer) {
  const ApiError error = too_many_error("connections");
  const std::string answer = http_answer(error.status, "application/json", error_json(error, ""));
  (void)::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (observer_.on_peer_refused) observer_.on_peer_refused(peer.uid, Error{Reason::TooMany, error.message});
}

ApiResult<std::size_t> ApiServer::on_head(Id id, const HttpRequest& request) {
  Connection& connection = connections_.at(id);
  connection.call = request.method + " " + request.path;
  auto match = find_route(names_, request.method, request.path);
  if (!match) return std::unexpected(std::move(match).error());
  const Route& route = routes_[match->index];
  for (const auto& [name, value] : request.query) {
    if (std::ranges::find(route.query, name) == route.query.end()) {
      return control::refuse(400, "bad_request",
                             "the query's \"" + name + "\" is nothing that this call knows");
    }
  }
  connection.route = std::move(*match);
  return route.max_body_bytes;
}

void ApiServer::on_request(Id id, HttpRequest request, const std::string& body, std::vector<Fd> fds) {
  Connection& connection = connections_.at(id);
  const Route& route = routes_[connection.route.index];
  auto of_user = calls_of_user_.take(connection.peer.uid);
  auto of_all = access_.is_master(connection.peer.uid) ? std::nullopt : calls_.take();
  if (!of_user || (!of_all && !access_.is_master(connection.peer.uid)))
    return refuse(connection, too_many_error("calls"));
  if (fds.size() > route.max_descriptors) {
    return refuse(
        connection,
        {400, "bad_request", fmt::format("This call takes at most {} descriptors.", route.max_descriptors)});
  }
  const std::string request_id = connection.request_id;
  Call call{.peer = connection.peer,
            .request_id = request_id,
            .path = std::move(connection.route.parameters),
            .query = std::move(request.query),
            .body = nullptr,
            .descriptors = std::move(fds)};
  if (!body.empty()) {
    auto value = parse_json(body);
    if (!value) return refuse(connection, to_api_error(value.error()));
    call.body = std::move(*value);
  }
  // The request is here: another may come. It is a call from now on.
  connection.call_of_user.emplace(std::move(*of_user));
  if (of_all) connection.call_of_all.emplace(std::move(*of_all));
  connection.of_user.reset();
  connection.of_all.reset();
  try {
    route.handler(std::move(call), Answer(connection.http, request_id));
  } catch (const std::exception& mistake) {
    if (observer_.on_mistake) observer_.on_mistake(request_id, mistake.what());
  }
}

void ApiServer::refuse(Connection& connection, const ApiError& error) {
  // By itself: the connection may end in it.
  const auto http = connection.http;
  http->send(error.status, "application/json", error_json(error, connection.request_id));
}

void ApiServer::on_closed(Id id, int status) {
  auto node = connections_.extract(id);
  if (node.empty()) return;
  const Connection& connection = node.mapped();
  if (observer_.on_call) observer_.on_call(connection.peer, connection.request_id, connection.call, status);
}

}  // namespace sallyport::control
