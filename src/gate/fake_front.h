// For tests: what the bytes of one connection come to, from the client to the bytes for the upstream, without
// a socket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/fake_recorder.h"
#include "gate/requests.h"
#include "http/fake_stream.h"
#include "upstream/http_exchange.h"

namespace sallyport::gate::testing {

// Fetching from forge.test/acme/widget, without a credential.
inline policy::Grant forge_grant() {
  policy::Grant grant;
  auto pattern = *policy::RepoPattern::parse("forge.test/acme/widget", policy::HostKind::Generic);
  grant.hosts.emplace(pattern.host(), policy::UpstreamHost{});
  grant.git.push_back({std::move(pattern), policy::Access::Fetch, "", {}});
  return grant;
}

// How a connection came to us: what the kernel and TLS said of it before its first request.
struct Arrival {
  audit::Entry entry = audit::Entry::Tls;
  policy::Scheme scheme = policy::Scheme::Https;
  std::optional<policy::HostName> host;

  std::uint16_t port() const {
    return scheme == policy::Scheme::Https ? policy::kHttpsPort : policy::kHttpPort;
  }
};
inline Arrival under_tls(std::string_view host = "forge.test") {
  return {.host = *policy::HostName::parse(host)};
}
// To a name's own address.
inline Arrival in_clear(std::string_view host = "forge.test") {
  return {audit::Entry::Http, policy::Scheme::Http, *policy::HostName::parse(host)};
}
// To an address that says nothing.
inline Arrival in_clear_to_anybody() {
  return {audit::Entry::Http, policy::Scheme::Http, std::nullopt};
}
inline Arrival at_the_proxy() {
  return {audit::Entry::Proxy, policy::Scheme::Http, std::nullopt};
}

// "https://forge.test:443"
inline std::string origin_of(std::string_view scheme, std::string_view host, std::uint16_t port) {
  return std::string(scheme) + "://" + std::string(host) + ":" + std::to_string(port);
}

// What the code for upstreams would write to one, byte for byte. The upstream answers 404 to each request,
// when all of it has come.
class WireOpener final : public upstream::Opener {
 public:
  explicit WireOpener(http::FakeStream& client) : client_(client) {}

  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request request) override {
    sent.push_back({"", false, origin_of(policy::name(request.scheme), request.host.str(), request.port)});
    auto exchange = std::make_unique<Exchange>(*this, request);
    auto begun = co_await exchange->begin(request);
    if (!begun) co_return fail(std::move(begun));
    co_return exchange;
  }

  struct Sent {
    std::string bytes;
    bool complete = false;
    std::string origin;  // to whom
  };
  std::vector<Sent> sent;

 private:
  class Exchange final : public upstream::Exchange {
   public:
    Exchange(WireOpener& opener, const upstream::Request& request) : opener_(opener) {
      auto stream =
          std::make_unique<http::FakeStream>(std::vector<std::string>{}, http::FakeStream::End::Silence);
      wire_ = stream.get();
      real_ =
          std::make_unique<upstream::HttpExchange>(std::move(stream), request, policy::Timeouts{}, nullptr);
    }
    // A client that waits for its answer does not end its connection meanwhile.
    ~Exchange() override { opener_.client_.feed_end(http::FakeStream::End::Eof); }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    net::Task<Status> begin(const upstream::Request& request) {
      if (request.body == upstream::BodyKind::None) opener_.client_.feed_end(http::FakeStream::End::Silence);
      auto head = upstream::request_head(request, upstream::Carries::Nothing);
      if (!head) co_return fail(std::move(head));
      auto written = co_await real_->send_head(std::move(*head), nullptr);
      take();
      co_return written;
    }
    net::Task<Status> send_body(std::string_view bytes) override {
      auto written = co_await real_->send_body(bytes);
      take();
      co_return written;
    }
    net::Task<Status> end_body() override {
      opener_.client_.feed_end(http::FakeStream::End::Silence);
      auto ended = co_await real_->end_body();
      take();
      opener_.sent.back().complete = ended.has_value();
      wire_->feed("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
      co_return ended;
    }
    net::Task<Result<upstream::AnswerHead>> read_head() override { return real_->read_head(); }
    net::Task<Result<std::size_t>> read_body(std::span<char> into) override { return real_->read_body(into); }
    void abort() noexcept override { real_->abort(); }

   private:
    void take() { opener_.sent.back().bytes += wire_->take_output(); }

    WireOpener& opener_;
    http::FakeStream* wire_ = nullptr;  // owned by real_
    std::unique_ptr<upstream::HttpExchange> real_;
  };

  http::FakeStream& client_;
};

// What became of the bytes of one connection.
struct Verdict {
  std::vector<std::string>
      lines;  // the audit lines: "refused bad_request", "begin", "end upstream_not_found"
  std::vector<WireOpener::Sent> sent;
  std::string answer;
  struct Judged {
    std::string method;
    std::string target;
    std::string origin;
  };
  std::vector<Judged> judged;     // what the begin lines say
  bool ended_by_connect = false;  // which is the front's to judge

  std::size_t answers() const {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = answer.find("HTTP/1.1 ", at)) != std::string::npos; ++at) {
      if (!answer.substr(at).starts_with("HTTP/1.1 100 ")) ++count;
    }
    return count;
  }
};

inline Verdict serve_bytes(std::vector<std::string> pieces, const policy::Grant& grant,
                           const Arrival& arrival, forward::Usage& usage) {
  audit::FakeRecorder recorder;
  http::FakeStream stream(std::move(pieces));
  WireOpener opener(stream);
  forward::Live live;
  const git::Context context{grant, recorder, opener, opener, live};
  const egress::HttpContext plain{grant, recorder, opener, live};
  const GatewaysInForce in_force = std::make_shared<Gateways>(context, plain, nullptr, usage);
  const auto serve = [&]() -> net::Task<bool> {
    const bool proxy = arrival.entry == audit::Entry::Proxy;
    http::Connection connection(stream, arrival.port(), policy::Timeouts{}.request_head,
                                proxy ? http::Entry::Proxy : http::Entry::Origin);
    const auto connect = co_await serve_requests(in_force,
                                                 {.entry = arrival.entry,
                                                  .destination = "198.18.0.2:443",
                                                  .scheme = arrival.scheme,
                                                  .port = arrival.port(),
                                                  .host = arrival.host},
                                                 connection);
    co_return connect.has_value();
  };
  Verdict verdict;
  verdict.ended_by_connect = http::run_alone(serve());
  verdict.sent = std::move(opener.sent);
  verdict.answer = std::move(stream.output);
  for (const audit::Event& event : recorder.events) {
    const std::string reason(code(event.reason));
    if (event.kind == audit::Kind::Begin) {
      verdict.lines.emplace_back("begin");
      verdict.judged.push_back({event.method, event.path, origin_of(event.scheme, event.host, event.port)});
    } else {
      verdict.lines.push_back((event.kind == audit::Kind::Refused ? "refused " : "end ") + reason);
    }
  }
  return verdict;
}
// Of a session that has done nothing yet.
inline Verdict serve_bytes(std::vector<std::string> pieces, const policy::Grant& grant,
                           const Arrival& arrival = under_tls()) {
  forward::Usage usage(grant.limits);
  return serve_bytes(std::move(pieces), grant, arrival, usage);
}

}  // namespace sallyport::gate::testing
