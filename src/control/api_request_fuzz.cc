#include <sys/socket.h>

#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control/api_server.h"
#include "control/standard_routes.h"

namespace {

using namespace sallyport;
using namespace sallyport::control;

std::vector<Route> routes() {
  auto routes = standard_routes({.why_not_ready = [] { return std::nullopt; }, .metrics = [] { return ""; }});
  routes.push_back({"POST",
                    "/v1/echo/{id}",
                    [](Call call, Answer answer) {
                      answer.send(200, {{"id", call.path.at("id")}, {"body", std::move(call.body)}});
                    },
                    {"tail"},
                    kMaxLargeBodyBytes});
  routes.push_back({"DELETE", "/v1/echo/{id}", [](const Call&, Answer answer) {
                      answer.line({{"line", 1}});
                      answer.end();
                    }});
  return routes;
}

bool begins_as_an_answer(std::string_view text) {
  return text.starts_with("HTTP/1.1 2") || text.starts_with("HTTP/1.1 4");
}

}  // namespace

// Everything that a local user may send before it hangs up: one answer or none, and the connection is over.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) std::abort();
  const Fd client(ends[1]);
  if (size > 0 && ::send(client.get(), data, size, 0) != static_cast<ssize_t>(size))
    return 0;  // too much at once
  ::shutdown(client.get(), SHUT_WR);

  os::EventLoop loop;
  int answered = -1;
  ApiServer server(loop, {}, routes(),
                   {.on_peer_refused = nullptr,
                    .on_call =
                        [&](const os::Peer&, const std::string&, const std::string&, int status) {
                          answered = status;
                          loop.stop();
                        },
                    .on_mistake = [](const std::string&, const std::string&) { std::abort(); }});
  server.serve(Fd(ends[0]), os::Peer{.pid = 1, .uid = 0, .gid = 0, .groups = {}});
  if (!loop.run()) std::abort();

  std::string answer(std::size_t{1024} * 1024, '\0');
  const ssize_t got = ::recv(client.get(), answer.data(), answer.size(), 0);
  if (server.connections() != 0 || answered == 500) std::abort();
  if (answered == 0 ? got > 0 : !begins_as_an_answer(answer)) std::abort();
  return 0;
}
