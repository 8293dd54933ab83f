// For tests: a real server at a real socket, on a thread of its own, with calls that show what a handler may
// do.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <boost/json.hpp>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "control/api_server.h"
#include "control/standard_routes.h"
#include "os/control_socket.h"
#include "os/local_test.h"

namespace sallyport::control {

class ApiFixture {
 public:
  explicit ApiFixture(HttpTimes times = {}, ApiAccess access = {.owner = 0, .operators = std::nullopt})
      : socket_(os::ControlSocket::open(path(), access.operators)),
        server_(loop_, access, routes(),
                {.on_peer_refused = [this](uid_t uid,
                                           const Error& why) { refused_.emplace_back(uid, why.detail); },
                 .on_call = [this](const os::Peer&, const std::string&, const std::string& call,
                                   int status) { calls_.push_back(call + " " + std::to_string(status)); },
                 .on_mistake = [this](const std::string&,
                                      const std::string& what) { mistakes_.push_back(what); }},
                times),
        stop_(::eventfd(0, EFD_CLOEXEC)) {
    EXPECT_TRUE(socket_) << socket_.error().detail;
    server_.listen(socket_->fd());
    loop_.watch(stop_.get(), POLLIN, [this](short) { loop_.stop(); });
    thread_ = std::thread([this] { EXPECT_TRUE(loop_.run()); });
  }
  ApiFixture(const ApiFixture&) = delete;
  ApiFixture& operator=(const ApiFixture&) = delete;
  ~ApiFixture() { stop(); }

  // Ends the thread; what it saw may be looked at from then on.
  void stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }

  std::string path() const { return room_ / "run/control.sock"; }
  const std::string& folder() const { return room_.path(); }
  std::future<void> gone() { return gone_.get_future(); }
  const std::vector<std::pair<uid_t, std::string>>& refused() const { return refused_; }
  const std::vector<std::string>& calls() const { return calls_; }
  const std::vector<std::string>& mistakes() const { return mistakes_; }
  std::size_t connections() const { return server_.connections(); }

 private:
  std::vector<Route> routes() {
    auto routes =
        standard_routes({.why_not_ready =
                             [] {
                               return NotReady{"the vault is not up",
                                               "It is started again by itself; its log says why it died."};
                             },
                         .metrics = [] { return std::string("sallyport_sessions 0\n"); }});
    routes.push_back({"POST",
                      "/v1/echo/{id}",
                      [](Call call, Answer answer) {
                        answer.send(201, {{"id", call.path.at("id")},
                                          {"uid", call.peer.uid},
                                          {"query", boost::json::value_from(call.query)},
                                          {"descriptors", call.descriptors.size()},
                                          {"body", call.body}});
                      },
                      {"tail"},
                      kMaxBodyBytes,
                      kMaxDescriptors});
    routes.push_back({"POST",
                      "/v1/large",
                      [](const Call&, Answer answer) { answer.send(200, {}); },
                      {},
                      kMaxLargeBodyBytes});
    routes.push_back({"GET", "/v1/huge", [](const Call&, Answer answer) {
                        answer.text(200, "text/plain", std::string(kMaxAnswerBytes, 'x'));
                      }});
    routes.push_back({"GET", "/v1/too_huge", [](const Call&, Answer answer) {
                        answer.text(200, "text/plain", std::string(kMaxAnswerBytes + 1, 'x'));
                      }});
    routes.push_back({"GET", "/v1/later", [this](const Call&, Answer answer) {
                        auto kept = std::make_shared<Answer>(std::move(answer));  // a std::function copies
                        loop_.after(std::chrono::milliseconds(1),
                                    [kept] { kept->send(200, {{"late", true}}); });
                      }});
    routes.push_back({"GET", "/v1/dropped", [](const Call&, const Answer&) {}});
    routes.push_back(
        {"GET", "/v1/thrown", [](const Call&, const Answer&) { throw std::runtime_error("a mistake"); }});
    routes.push_back({"GET", "/v1/refused", [](const Call&, Answer answer) {
                        answer.refuse(Error{Reason::RepoNotGranted, "not \xff yours"});
                      }});
    routes.push_back({"GET", "/v1/forever", [this](const Call&, Answer answer) {
                        held_.emplace(std::move(answer));
                        held_->when_gone([this] { gone_.set_value(); });
                      }});
    routes.push_back({"GET", "/v1/lines", [](const Call&, Answer answer) {
                        for (int i = 0; i < 3; ++i) EXPECT_TRUE(answer.line({{"line", i}}));
                        answer.end();
                      }});
    routes.push_back({"GET", "/v1/no_lines", [](const Call&, Answer answer) { answer.end(); }});
    routes.push_back(
        {"GET", "/v1/cut", [](const Call&, Answer answer) { EXPECT_TRUE(answer.line({{"line", 0}})); }});
    routes.push_back({"GET", "/v1/flood", [this](const Call&, Answer answer) {
                        answer.when_gone([this] { gone_.set_value(); });
                        const boost::json::value line{{"filler", std::string(1000, 'x')}};
                        while (answer.line(line)) {
                        }
                        EXPECT_TRUE(answer.is_gone());
                      }});
    routes.push_back({"GET", "/v1/one_line", [this](const Call&, Answer answer) {
                        EXPECT_TRUE(answer.line({{"filler", std::string(kMaxQueuedBytes - 1000, 'x')}}));
                        held_.emplace(std::move(answer));
                        held_->when_gone([this] { gone_.set_value(); });
                      }});
    return routes;
  }

  os::PrivateFolder room_;
  os::EventLoop loop_;
  Result<os::ControlSocket> socket_;
  std::promise<void> gone_;
  std::optional<Answer> held_;
  std::vector<std::pair<uid_t, std::string>> refused_;
  std::vector<std::string> calls_;
  std::vector<std::string> mistakes_;
  ApiServer server_;
  Fd stop_;
  std::thread thread_;
};

inline bool send_plainly(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// All that comes until the end, or a reset.
inline std::string read_to_end(int socket) {
  std::string all;
  char piece[16 * 1024];
  for (;;) {
    const ssize_t got = ::recv(socket, piece, sizeof piece, 0);
    if (got <= 0) return all;
    all.append(piece, static_cast<std::size_t>(got));
  }
}

// The answer to these bytes, sent at once.
inline std::string answer_to(const std::string& path, std::string_view bytes) {
  const Fd socket = os::connect_plainly(path);
  EXPECT_TRUE(socket);
  send_plainly(socket.get(), bytes);
  return read_to_end(socket.get());
}

}  // namespace sallyport::control
