// For tests: a front whose upstreams are fakes, and connections to it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "audit/fake_recorder.h"
#include "gate/front.h"
#include "gate/testing.h"

namespace sallyport::gate::testing {

inline policy::Grant test_grant() {
  policy::Grant grant;
  for (const char* repo : {"api.ok.test/acme/widget", "zed.ok.test/acme/widget"}) {
    auto pattern = *policy::RepoPattern::parse(repo, policy::HostKind::Generic);
    grant.hosts.emplace(pattern.host(), policy::UpstreamHost{});
    grant.git.push_back({std::move(pattern), policy::Access::Fetch, "", {}});
  }
  policy::AllowRule plain;
  plain.hosts = {*policy::HostPattern::parse("plain.ok.test")};
  plain.ports = {policy::kHttpPort};
  grant.allow.push_back(plain);
  policy::AllowRule pinned;
  pinned.hosts = {*policy::HostPattern::parse("pin.test.test")};
  pinned.tls = policy::TlsMode::Splice;
  pinned.source = {"sallyport.toml", 7};
  grant.allow.push_back(pinned);
  grant.tcp.push_back({*policy::HostName::parse("db.ok.test"), 5432, {"sallyport.toml", 7}});
  return grant;
}

// Addresses as the grant above gives them out.
inline constexpr const char* kApi = "198.18.0.2";
inline constexpr const char* kZed = "198.18.0.3";
inline constexpr const char* kNobody = "198.18.0.9";
inline constexpr const char* kElsewhere = "192.0.2.7";

class FrontTest : public ::testing::Test {
 protected:
  explicit FrontTest(policy::Grant grant = test_grant()) : grant_(std::move(grant)) {}

  // One connection that was going to `destination`, served to its end. The client runs beside it.
  void serve(std::optional<os::Endpoint> destination, const std::function<void(int socket)>& client) {
    auto [server_end, client_end] = tcp_pair();
    worker_.spawn("test", serve_one(std::move(server_end), std::move(destination)));
    std::thread thread([&, socket = std::move(client_end)] { client(socket.get()); });
    worker_.run();
    thread.join();
  }

  void expect_only(Reason reason, std::string_view host) {
    ASSERT_EQ(recorder_.events.size(), 1U);
    const audit::Event& event = recorder_.events.front();
    EXPECT_EQ(event.kind, audit::Kind::Refused);
    EXPECT_EQ(code(event.reason), code(reason)) << event.detail;
    EXPECT_EQ(event.host, host);
    EXPECT_FALSE(event.request.empty());
    EXPECT_EQ(vault_.opened + direct_.opened, 0);
    recorder_.events.clear();
  }

  net::Worker worker_;
  policy::Grant grant_;
  audit::FakeRecorder recorder_;
  FakeOpener vault_;
  FakeOpener direct_;
  forward::Live live_;
  git::Context git_{grant_, recorder_, vault_, direct_, live_};
  egress::HttpContext http_{grant_, recorder_, direct_, live_};
  forward::Usage usage_{grant_.limits};
  dns::SyntheticAddresses addresses_{grant_};
  dns::Server dns_{worker_, grant_, addresses_, recorder_};
  net::KeyPair ca_ = *net::make_session_ca("0123456789abcdef");
  X509* const authority_ = ca_.certificate.get();  // which the interceptor keeps
  std::unique_ptr<egress::Interceptor> interceptor_ = *egress::Interceptor::make(worker_, std::move(ca_));
  std::unique_ptr<net::Resolver> resolver_ =
      *net::Resolver::make(worker_, {*policy::parse_pinned_address("127.0.0.1:1")});
  egress::Tunnels tunnels_{worker_, *resolver_, grant_, recorder_, usage_, live_};
  GatewaysInForce in_force_ = std::make_shared<Gateways>(git_, http_, &tunnels_, usage_);
  Front front_{{worker_, in_force_, addresses_, dns_, *interceptor_}};

 private:
  net::Task<> serve_one(Fd connection, std::optional<os::Endpoint> destination) {
    co_await front_.serve(std::move(connection), std::move(destination));
    worker_.stop();
  }
};

}  // namespace sallyport::gate::testing
