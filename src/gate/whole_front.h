// For tests: a whole front with every door, to which a client says all that it has to say at once.
#pragma once

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "audit/fake_recorder.h"
#include "audit/json.h"
#include "base/text.h"
#include "dns/testing.h"
#include "egress/test_client.h"
#include "egress/test_hello.h"
#include "gate/front.h"
#include "gate/testing.h"

namespace sallyport::gate::testing {

// An address that stands for no name.
inline constexpr const char* kAnyAddress = "192.0.2.7";
inline const os::Endpoint kProxyDoor = endpoint("198.18.0.1", 3128);

// What became of one connection.
struct Served {
  std::vector<audit::Event> events;
  std::string answer;
  int opened = 0;   // requests to upstreams
  int lookups = 0;  // questions to the host's name server
};

// Names that no operator pins to an address are asked for at a name server that never answers.
class WholeFront {
 public:
  explicit WholeFront(policy::Grant grant) : grant_(std::move(grant)) {}

  // The client says `pieces`, each when the one before was read, and ends its direction.
  Served serve(const os::Endpoint& destination, std::vector<std::string> pieces) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return {};
    const Fd client(ends[1]);
    recorder_.events.clear();
    const int opened_before = vault_.opened + direct_.opened;
    running_ = 2;
    worker_.spawn("client", say(std::move(pieces), client.get()));
    worker_.spawn("front", serve_one(Fd(ends[0]), destination));
    worker_.run();
    return {std::move(recorder_.events), receive_all(client.get()).bytes,
            vault_.opened + direct_.opened - opened_before, new_lookups()};
  }

  // A client that listens too: it runs beside the front, on a socket that blocks.
  Served serve_beside(const os::Endpoint& destination, const std::function<void(int socket)>& client) {
    auto [server_end, client_end] = egress::test_sockets();
    ::fcntl(server_end.get(), F_SETFL, O_NONBLOCK);
    recorder_.events.clear();
    running_ = 1;
    worker_.spawn("front", serve_one(std::move(server_end), destination));
    std::thread thread([&client, socket = std::move(client_end)] { client(socket.get()); });
    worker_.run();
    thread.join();
    return {std::move(recorder_.events), "", 0, new_lookups()};
  }

  dns::SyntheticAddresses& addresses() { return addresses_; }
  const policy::Grant& grant() const { return grant_; }

 private:
  net::Task<> serve_one(Fd connection, os::Endpoint destination) {
    // Anew for each connection: how often a session may ask for names is not what is tested here.
    dns::Server dns(worker_, grant_, addresses_, recorder_);
    Front front({worker_, in_force_, addresses_, dns, *interceptor_});
    co_await front.serve(std::move(connection), std::move(destination));
    served_ = true;
    end_one();
  }
  net::Task<> say(std::vector<std::string> pieces, int client) {
    served_ = false;
    for (const std::string& piece : pieces) {
      int unread = 1;
      while (!served_ && ::ioctl(client, SIOCOUTQ, &unread) == 0 && unread > 0) {
        co_await worker_.sleep(net::Clock::duration::zero());
      }
      send_text(client, piece);
    }
    ::shutdown(client, SHUT_WR);
    end_one();
  }
  void end_one() {
    if (--running_ == 0) worker_.stop();
  }
  int new_lookups() const {
    int count = 0;
    char buffer[512];
    while (::recv(name_server_.get(), buffer, sizeof buffer, MSG_DONTWAIT) >= 0) ++count;
    return count;
  }

  net::Worker worker_;
  int running_ = 0;      // coroutines of the connection
  bool served_ = false;  // the front is done with it
  policy::Grant grant_;
  audit::FakeRecorder recorder_;
  FakeOpener vault_;
  FakeOpener direct_;
  forward::Live live_;
  git::Context git_{grant_, recorder_, vault_, direct_, live_};
  egress::HttpContext http_{grant_, recorder_, direct_, live_};
  forward::Usage usage_{policy::Limits::highest()};  // nor is how much it may use
  dns::SyntheticAddresses addresses_{grant_};
  std::unique_ptr<egress::Interceptor> interceptor_ =
      *egress::Interceptor::make(worker_, *net::make_session_ca("0123456789abcdef"));
  Fd name_server_ = loopback_socket(SOCK_DGRAM);
  std::unique_ptr<net::Resolver> resolver_ = *net::Resolver::make(
      worker_, {*policy::parse_pinned_address(bound_address(name_server_.get()).text())});
  egress::Tunnels tunnels_{worker_, *resolver_, grant_, recorder_, usage_, live_};
  GatewaysInForce in_force_ = std::make_shared<Gateways>(git_, http_, &tunnels_, usage_);
};

// ---- what a client says ----

// A whole ClientHello of TLS 1.3 without a key share: its server asks for one, and has judged the name.
inline std::string hello_for(const std::string& extensions) {
  using namespace egress::test;
  const std::string groups = extension(10, list(u16(0x001d) + u16(0x0017)));
  const std::string signatures = extension(13, list(u16(0x0403) + u16(0x0804)));
  const std::string shares = extension(51, u16(0));
  return record(message(hello_body(extensions + versions({0x0304}) + groups + signatures + shares)));
}
inline std::string hello_to(std::string_view name) {
  return hello_for(name.empty() ? "" : egress::test::sni(name));
}

inline std::string connect_to_host(std::string_view host, std::uint16_t port) {
  return "CONNECT " + std::string(host) + ":" + std::to_string(port) + " HTTP/1.1\r\n\r\n";
}

inline std::string request_for(std::string_view method, std::string_view target, std::string_view host) {
  const std::string_view length = method == "POST" ? "Content-Length: 0\r\n" : "";
  return std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: " + std::string(host) +
         "\r\n" + std::string(length) + "\r\n";
}
// Behind its length, as over TCP; none where the name has no form on the wire.
inline std::optional<std::string> dns_query(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.size() > policy::HostName::kMaxBytes) return std::nullopt;
  for (const std::string_view label : split(host, '.')) {
    if (label.empty() || label.size() > policy::HostName::kMaxLabelBytes) return std::nullopt;
  }
  const std::string query = dns::testing::make_query(host, 1);
  return egress::test::u16(query.size()) + query;
}

// ---- what became of it ----

// "allowed", or the code of the only refusal; anything else is told in full.
inline std::string verdict_of(const Served& served) {
  std::string all;
  for (const audit::Event& event : served.events) {
    all += std::string(audit::name(event.kind)) + " " + std::string(code(event.reason)) + ";";
  }
  if (served.events.size() == 2 && served.events[0].kind == audit::Kind::Begin &&
      served.events[1].kind == audit::Kind::End) {
    return "allowed";
  }
  if (served.events.size() != 1 || served.events[0].kind != audit::Kind::Refused) return all;
  // The client left where the next word was its own: its name was allowed.
  if (served.events[0].reason == Reason::ClientClosed) return "allowed";
  if (served.opened + served.lookups > 0) return all + " but something was opened";
  return std::string(code(served.events[0].reason));
}

inline std::string verdict_in_dns(WholeFront& front, const std::string& query) {
  const Served served = front.serve(endpoint("8.8.8.8", 53), {query});
  // An answer that is no refusal leaves no line.
  if (served.events.empty()) return served.answer.size() > query.size() ? "allowed" : "no answer";
  return verdict_of(served);
}

}  // namespace sallyport::gate::testing
