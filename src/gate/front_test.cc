#include "gate/front.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "audit/fake_recorder.h"
#include "egress/test_client.h"
#include "egress/test_hello.h"
#include "gate/testing.h"

namespace sallyport::gate {
namespace {

using namespace std::string_literals;
using egress::TestClient;
using testing::endpoint;
using testing::receive_all;
using testing::send_text;

policy::Grant test_grant() {
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
constexpr const char* kApi = "198.18.0.2";
constexpr const char* kZed = "198.18.0.3";
constexpr const char* kNobody = "198.18.0.9";
constexpr const char* kElsewhere = "192.0.2.7";

class FrontTest : public ::testing::Test {
 protected:
  // One connection that was going to `destination`, served to its end. The client runs beside it.
  void serve(std::optional<os::Endpoint> destination, const std::function<void(int socket)>& client) {
    auto [server_end, client_end] = testing::tcp_pair();
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
  policy::Grant grant_ = test_grant();
  audit::FakeRecorder recorder_;
  testing::FakeOpener vault_;
  testing::FakeOpener direct_;
  git::Context git_{grant_, recorder_, vault_, direct_};
  egress::HttpContext http_{grant_, recorder_, direct_};
  dns::SyntheticAddresses addresses_{grant_};
  dns::Server dns_{worker_, grant_, addresses_, recorder_};
  std::unique_ptr<egress::Interceptor> interceptor_ =
      *egress::Interceptor::make(worker_, *net::make_session_ca("0123456789abcdef"));
  std::unique_ptr<net::Resolver> resolver_ =
      *net::Resolver::make(worker_, {*policy::parse_pinned_address("127.0.0.1:1")});
  egress::Tunnels tunnels_{worker_, *resolver_, grant_, recorder_};
  Front front_{{worker_, {git_, http_}, addresses_, dns_, *interceptor_, tunnels_}};

 private:
  net::Task<> serve_one(Fd connection, std::optional<os::Endpoint> destination) {
    co_await front_.serve(std::move(connection), std::move(destination));
    worker_.stop();
  }
};

// ---- connections that are refused without a word ----

TEST_F(FrontTest, ResetsWhatNoDoorIsFor) {
  struct Case {
    std::string_view what;
    std::optional<os::Endpoint> destination;
    Reason reason;
    std::string_view host;
  };
  const std::vector<Case> cases{
      {"the door itself", std::nullopt, Reason::DoorAddressed, ""},
      {"ssh at a host's address", endpoint(kApi, 22), Reason::PortNotAllowed, "api.ok.test"},
      {"another port at a host's address", endpoint(kZed, 8443), Reason::PortNotAllowed, "zed.ok.test"},
      {"DNS over TLS", endpoint("1.1.1.1", 853), Reason::IpLiteral, ""},
      {"an address of the range that stands for nobody", endpoint(kNobody, 22), Reason::IpLiteral, ""},
      {"an address", endpoint(kElsewhere, 22), Reason::IpLiteral, ""},
      {"metadata", endpoint("169.254.169.254", 8080), Reason::IpLiteral, ""},
      {"an IPv6 address", endpoint("2001:db8::1", 22), Reason::IpLiteral, ""},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.what);
    serve(test.destination, [](int socket) {
      const auto received = receive_all(socket);
      EXPECT_EQ(received.bytes, "");
      EXPECT_EQ(received.error, ECONNRESET);
    });
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events.front().entry, audit::Entry::Tcp);
    EXPECT_EQ(recorder_.events.front().destination, test.destination ? test.destination->text() : "");
    expect_only(test.reason, test.host);
  }
}

// ---- TLS ----

TEST_F(FrontTest, RefusesHandshakesWithTheirReason) {
  struct Case {
    const char* address;
    std::string sni;
    Reason reason;
    std::string_view host;
  };
  const std::vector<Case> cases{
      {kApi, "evil.test", Reason::HostNotAllowed, "evil.test"},
      {kElsewhere, "evil.test", Reason::HostNotAllowed, "evil.test"},
      {kApi, "zed.ok.test", Reason::SniMismatch, "zed.ok.test"},
      {kApi, "", Reason::NoSni, ""},
      {kElsewhere, "127.1", Reason::IpLiteral, ""},
      {kApi, "api.ok.test:443", Reason::BadRequest, ""},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.address + " "s + test.sni);
    serve(endpoint(test.address, 443), [&](int socket) {
      TestClient client(socket, {.sni = test.sni});
      EXPECT_FALSE(client.connect());
    });
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events.front().entry, audit::Entry::Tls);
    EXPECT_EQ(recorder_.events.front().destination, test.address + ":443"s);
    expect_only(test.reason, test.host);
  }
}

TEST_F(FrontTest, EmptyPolicyRefusesEveryHandshake) {
  grant_ = {};
  serve(endpoint(kElsewhere, 443), [](int socket) {
    TestClient client(socket, {});
    EXPECT_FALSE(client.connect());
  });
  expect_only(Reason::PolicyEmpty, "api.ok.test");
}

TEST_F(FrontTest, RefusesWhatIsNotTlsOnPort443) {
  serve(endpoint(kApi, 443), [](int socket) {
    send_text(socket, "GET / HTTP/1.1\r\nHost: api.ok.test\r\n\r\n");
    receive_all(socket);
  });
  expect_only(Reason::NotTls, "");
}

// What a client gets for `request`, sent as it is on one TLS connection.
std::string over_tls(int socket, std::string_view request) {
  TestClient client(socket, {});
  EXPECT_TRUE(client.connect());
  EXPECT_TRUE(client.write(request));
  std::string answer = client.read_all();
  client.end();
  return answer;
}
const std::string kAdvertisement =
    "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: api.ok.test\r\n";

TEST_F(FrontTest, DialsTheNameWhateverAddressTheClientUsed) {
  for (const char* address : {kApi, kElsewhere, kNobody, "2001:db8::1", "127.0.0.1"}) {
    SCOPED_TRACE(address);
    std::string answer;
    serve(endpoint(address, 443),
          [&](int socket) { answer = over_tls(socket, kAdvertisement + "Connection: close\r\n\r\n"); });
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
    EXPECT_EQ(direct_.opened, 1);
    ASSERT_EQ(recorder_.events.size(), 2U);
    EXPECT_EQ(recorder_.events[0].kind, audit::Kind::Begin);
    EXPECT_EQ(recorder_.events[0].destination, endpoint(address, 443).text());
    EXPECT_EQ(recorder_.events[1].kind, audit::Kind::End);
    recorder_.events.clear();
    direct_.opened = 0;
  }
}

TEST_F(FrontTest, RefusesEverythingButGitOnAnAllowedHost) {
  std::string answer;
  serve(endpoint(kApi, 443), [&](int socket) {
    answer = over_tls(socket, "GET /login HTTP/1.1\r\nHost: api.ok.test\r\nConnection: close\r\n\r\n");
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
  expect_only(Reason::NotGit, "api.ok.test");
}

TEST_F(FrontTest, JudgesEveryRequestOfAConnectionByItself) {
  std::string answer;
  serve(endpoint(kApi, 443), [&](int socket) {
    answer = over_tls(socket,
                      "GET /one HTTP/1.1\r\nHost: api.ok.test\r\n\r\n"
                      "GET /two HTTP/1.1\r\nHost: zed.ok.test\r\nConnection: close\r\n\r\n");
  });
  EXPECT_NE(answer.find("HTTP/1.1 403 "), std::string::npos) << answer;
  EXPECT_NE(answer.find("HTTP/1.1 421 "), std::string::npos) << answer;
  ASSERT_EQ(recorder_.events.size(), 2U);
  EXPECT_EQ(code(recorder_.events[0].reason), code(Reason::NotGit));
  EXPECT_EQ(code(recorder_.events[1].reason), code(Reason::HostMismatch));
  EXPECT_EQ(direct_.opened + vault_.opened, 0);
}

TEST_F(FrontTest, AnswersAMalformedRequestAndServesNoneBehindIt) {
  std::string answer;
  serve(endpoint(kApi, 443), [&](int socket) {
    answer = over_tls(socket,
                      "GET /x HTTP/1.1\r\nHost: api.ok.test\r\nContent-Length: 1\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n" +
                          kAdvertisement + "\r\n");
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
  expect_only(Reason::BadRequest, "api.ok.test");
}

TEST_F(FrontTest, RecordsNothingForAConnectionThatAsksForNothing) {
  serve(endpoint(kApi, 443), [](int socket) {
    TestClient client(socket, {});
    EXPECT_TRUE(client.connect());
    client.end();
    client.read_all();
  });
  EXPECT_TRUE(recorder_.events.empty());
}

// ---- plain HTTP ----

TEST_F(FrontTest, RefusesPlainHttpWithWordsThatFit) {
  struct Case {
    const char* address;
    std::string request;
    std::string_view status;
    Reason reason;
    std::string_view host;
  };
  const std::vector<Case> cases{
      {kApi, "GET /acme/widget/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: api.ok.test\r\n\r\n",
       "403", Reason::PlainHttp, "api.ok.test"},
      {kElsewhere, "POST /x HTTP/1.1\r\nHost: API.ok.test\r\nContent-Length: 3\r\n\r\nabc", "403",
       Reason::PlainHttp, "api.ok.test"},
      {kZed, "GET / HTTP/1.1\r\nHost: api.ok.test\r\n\r\n", "421", Reason::HostMismatch, "zed.ok.test"},
      {kApi, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "421", Reason::HostMismatch, "api.ok.test"},
      {kElsewhere, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "403", Reason::HostNotAllowed, "evil.test"},
      {"169.254.169.254", "GET /latest/meta-data/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", "403",
       Reason::IpLiteral, ""},
      {kApi, "GET / HTTP/1.1\r\n\r\n", "400", Reason::BadRequest, "api.ok.test"},
      {kApi, "CONNECT api.ok.test:443 HTTP/1.1\r\nHost: api.ok.test\r\n\r\n", "400", Reason::BadRequest,
       "api.ok.test"},
      {kElsewhere, "SSH-2.0-x\r\n\r\n", "400", Reason::BadRequest, ""},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.request);
    std::string answer;
    serve(endpoint(test.address, 80), [&](int socket) {
      send_text(socket, test.request);
      ::shutdown(socket, SHUT_WR);
      answer = receive_all(socket).bytes;
    });
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(test.status) + " ")) << answer;
    EXPECT_NE(answer.find(info(test.reason).sentence), std::string::npos) << answer;
    EXPECT_EQ(answer.find("Use https://api.ok.test/") != std::string::npos, test.reason == Reason::PlainHttp);
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events.front().entry, audit::Entry::Http);
    EXPECT_EQ(recorder_.events.front().scheme, "http");
    expect_only(test.reason, test.host);
  }
}

TEST_F(FrontTest, JudgesEachPlainRequest) {
  std::string answer;
  serve(endpoint(kElsewhere, 80), [&](int socket) {
    send_text(socket,
              "GET / HTTP/1.1\r\nHost: api.ok.test\r\n\r\nGET / HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n"
              "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    ::shutdown(socket, SHUT_WR);
    answer = receive_all(socket).bytes;
  });
  ASSERT_EQ(recorder_.events.size(), 4U);
  EXPECT_EQ(recorder_.events[0].reason, Reason::PlainHttp);
  EXPECT_EQ(recorder_.events[1].kind, audit::Kind::Begin);
  EXPECT_EQ(recorder_.events[1].host, "plain.ok.test");
  EXPECT_EQ(recorder_.events[1].scheme, "http");
  EXPECT_EQ(recorder_.events[2].kind, audit::Kind::End);
  EXPECT_EQ(recorder_.events[3].reason, Reason::HostNotAllowed);
  EXPECT_EQ(direct_.opened, 1);
}

// ---- connections that are passed on ----

// The upstream of pin.test and of db.test: sees what comes, and says something.
class Passed : public FrontTest {
 protected:
  // What the upstream receives until the client is done sending, and then its answer for the client.
  std::string upstream_sees(std::optional<os::Endpoint> destination, std::string_view sent) {
    std::string seen;
    std::thread upstream([&] {
      const Fd accepted(::accept4(upstream_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      testing::bound_waiting(accepted.get());
      seen = receive_all(accepted.get()).bytes;
      send_text(accepted.get(), "answer");
    });
    std::string answer;
    serve(std::move(destination), [&](int socket) {
      send_text(socket, sent);
      ::shutdown(socket, SHUT_WR);
      answer = receive_all(socket).bytes;
    });
    upstream.join();
    EXPECT_TRUE(answer.ends_with("answer")) << answer;
    return seen;
  }
  void expect_carried(audit::Entry entry, std::string_view scheme, std::string_view host, std::size_t bytes) {
    ASSERT_EQ(recorder_.events.size(), 2U);
    const audit::Event& begin = recorder_.events[0];
    EXPECT_EQ(begin.kind, audit::Kind::Begin);
    EXPECT_EQ(begin.entry, entry);
    EXPECT_EQ(begin.scheme, scheme);
    EXPECT_EQ(begin.host, host);
    EXPECT_EQ(begin.rule, "sallyport.toml:7");
    const audit::Event& end = recorder_.events[1];
    EXPECT_EQ(end.request, begin.request);
    EXPECT_EQ(end.reason, Reason::None) << end.detail;
    EXPECT_EQ(end.bytes_in, bytes);
    EXPECT_EQ(end.bytes_out, 6U);
    recorder_.events.clear();
  }
  void SetUp() override {
    const int blocking = ::fcntl(upstream_.get(), F_GETFL) & ~O_NONBLOCK;
    ASSERT_EQ(::fcntl(upstream_.get(), F_SETFL, blocking), 0);
    policy::UpstreamHost here;
    here.address = policy::parse_pinned_address(testing::bound_address(upstream_.get()).text());
    grant_.hosts[*policy::HostName::parse("pin.test.test")] = here;
    grant_.hosts[*policy::HostName::parse("db.ok.test")] = here;
  }

  static std::string hello(std::string_view name, const std::string& more = "") {
    using namespace egress::test;
    return record(message(hello_body(sni(name) + versions({0x0304}) + more)));
  }

  Fd upstream_ = testing::loopback_socket(SOCK_STREAM);
};

TEST_F(Passed, SplicedTlsGoesAsItIs) {
  const std::string sent = hello("pin.test.test") + "whatever follows";
  EXPECT_EQ(upstream_sees(endpoint(kElsewhere, 443), sent), sent);
  expect_carried(audit::Entry::Tls, "https", "pin.test.test", sent.size());
}

TEST_F(Passed, ATcpRulesPortIsOpenWhateverIsSpoken) {
  const auto address = addresses_.address_of(*policy::HostName::parse("db.ok.test"));
  EXPECT_EQ(upstream_sees(endpoint(address.str().c_str(), 5432), "SSH-2.0-x"), "SSH-2.0-x");
  expect_carried(audit::Entry::Tcp, "tcp", "db.ok.test", 9);
}

TEST_F(Passed, AnEncryptedNameIsRefusedWhereNobodyLooksInside) {
  serve(endpoint(kElsewhere, 443), [&](int socket) {
    send_text(socket, hello("pin.test.test", egress::test::extension(0xfe0d, "x")));
    receive_all(socket);
  });
  expect_only(Reason::EchRefused, "pin.test.test");
}

// ---- the explicit proxy ----

TEST_F(Passed, AConnectLeadsWhereTheOtherWaysLead) {
  const auto proxy = endpoint("198.18.0.1", 3128);
  const std::string sent = hello("pin.test.test") + "more";
  EXPECT_EQ(
      upstream_sees(proxy, "CONNECT pin.test.test:443 HTTP/1.1\r\nHost: pin.test.test:443\r\n\r\n" + sent),
      sent);
  expect_carried(audit::Entry::Proxy, "https", "pin.test.test", sent.size());
  EXPECT_EQ(upstream_sees(proxy, "CONNECT db.ok.test:5432 HTTP/1.1\r\n\r\nhello"), "hello");
  expect_carried(audit::Entry::Proxy, "tcp", "db.ok.test", 5);
}

TEST_F(Passed, AConnectIsRefusedInWords) {
  struct Case {
    std::string_view target;
    std::string_view status;
    Reason reason;
  };
  for (const Case& test : std::vector<Case>{{"evil.test:443", "403", Reason::HostNotAllowed},
                                            {"db.ok.test:22", "403", Reason::PortNotAllowed},
                                            {"api.ok.test:80", "403", Reason::PlainHttp}}) {
    SCOPED_TRACE(test.target);
    std::string answer;
    serve(endpoint("198.18.0.1", 3128), [&](int socket) {
      send_text(socket, "CONNECT " + std::string(test.target) + " HTTP/1.1\r\n\r\n");
      answer = receive_all(socket).bytes;
    });
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(test.status) + " ")) << answer;
    EXPECT_NE(answer.find(info(test.reason).sentence), std::string::npos) << answer;
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Proxy);
    expect_only(test.reason, test.target.substr(0, test.target.find(':')));
  }
}

TEST_F(Passed, WhatComesInATunnelMustNameItsHost) {
  serve(endpoint("198.18.0.1", 3128), [&](int socket) {
    send_text(socket, "CONNECT api.ok.test:443 HTTP/1.1\r\n\r\n" + hello("pin.test.test"));
    receive_all(socket);
  });
  expect_only(Reason::SniMismatch, "pin.test.test");
}

TEST_F(Passed, AbsoluteFormIsJudgedRequestByRequest) {
  std::string answer;
  serve(endpoint("198.18.0.1", 3128), [&](int socket) {
    send_text(socket,
              "GET http://plain.ok.test/x HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n"
              "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
              "GET / HTTP/1.1\r\nHost: plain.ok.test\r\n\r\n");
    ::shutdown(socket, SHUT_WR);
    answer = receive_all(socket).bytes;
  });
  ASSERT_EQ(recorder_.events.size(), 4U);
  EXPECT_EQ(recorder_.events[0].kind, audit::Kind::Begin);
  EXPECT_EQ(recorder_.events[0].entry, audit::Entry::Proxy);
  EXPECT_EQ(recorder_.events[0].host, "plain.ok.test");
  EXPECT_EQ(recorder_.events[2].reason, Reason::HostNotAllowed);
  EXPECT_EQ(recorder_.events[3].reason, Reason::ProxyForm);
  EXPECT_EQ(direct_.opened, 1);
}

// ---- DNS over TCP ----

TEST_F(FrontTest, AnswersDnsOverTcpAtAnyAddress) {
  const std::string query = "\x12\x34\1\0\0\1\0\0\0\0\0\0\3api\2ok\4test\0\0\1\0\1"s;
  const std::string framed = "\0"s + static_cast<char>(query.size()) + query;
  std::string answer;
  serve(endpoint("8.8.8.8", 53), [&](int socket) {
    send_text(socket, framed + framed);
    ::shutdown(socket, SHUT_WR);
    answer = receive_all(socket).bytes;
  });
  ASSERT_EQ(answer.size(), 2 * (2 + query.size() + 16));
  EXPECT_TRUE(answer.ends_with("\xc6\x12\0\2"s));
  EXPECT_TRUE(recorder_.events.empty());
}

TEST_F(FrontTest, EndsADnsConnectionAtItsLimitOfQueriesOrBytes) {
  const std::string query = "\x12\x34\1\0\0\1\0\0\0\0\0\0\3api\2ok\4test\0\0\1\0\1"s;
  const std::string framed = "\0"s + static_cast<char>(query.size()) + query;
  std::string answer;
  serve(endpoint("8.8.8.8", 53), [&](int socket) {
    std::string many;
    for (std::size_t i = 0; i < dns::kMaxTcpQueries + 10; ++i) many += framed;
    send_text(socket, many);
    answer = receive_all(socket).bytes;
  });
  EXPECT_LE(answer.size() / (2 + query.size() + 16), dns::kMaxTcpQueries);

  serve(endpoint("8.8.8.8", 53), [&](int socket) {
    send_text(socket, "\xff\xff"s + std::string(0xffff, 'x'));
    answer = receive_all(socket).bytes;
  });
  EXPECT_LE(answer.size(), 2 + 12U);
}

// ---- pre-flight ----

TEST_F(FrontTest, AnswersTheProbeWhileItIsArmedAndRecordsNothing) {
  front_.arm(Probe{"probe 0123\n", "door 4567\n"});
  for (const std::uint16_t port :
       {std::uint16_t{443}, std::uint16_t{80}, std::uint16_t{53}, std::uint16_t{22}}) {
    std::string answer;
    serve(endpoint(kElsewhere, port), [&](int socket) {
      send_text(socket, "probe 0123\n");
      answer = receive_all(socket).bytes;
    });
    EXPECT_EQ(answer, "door 4567\n") << port;
  }
  EXPECT_TRUE(recorder_.events.empty());
}

TEST_F(FrontTest, RefusesWhatIsNotTheProbeWhileItIsArmed) {
  front_.arm(Probe{"probe 0123\n", "door 4567\n"});
  struct Case {
    std::string line;
    Reason reason;
  };
  for (const auto& [line, reason] :
       {Case{"probe 9999\n", Reason::BadRequest}, Case{"\n", Reason::BadRequest},
        Case{"probe 01234\n", Reason::BadRequest}, Case{"probe 9", Reason::BadRequest},
        Case{"probe 0123", Reason::ClientClosed}, Case{"", Reason::ClientClosed}}) {
    SCOPED_TRACE(line);
    std::string answer;
    serve(endpoint(kElsewhere, 443), [&](int socket) {
      send_text(socket, line);
      ::shutdown(socket, SHUT_WR);
      answer = receive_all(socket).bytes;
    });
    EXPECT_EQ(answer, "");
    expect_only(reason, "");
  }
}

TEST_F(FrontTest, RefusesItsOwnDoorAlsoToTheProbe) {
  front_.arm(Probe{"probe 0123\n", "door 4567\n"});
  serve(std::nullopt, [](int socket) {
    send_text(socket, "probe 0123\n");
    EXPECT_EQ(receive_all(socket).bytes, "");
  });
  expect_only(Reason::DoorAddressed, "");
}

TEST_F(FrontTest, KnowsNoProbeWhenItIsDisarmed) {
  front_.arm(Probe{"probe 0123\n", "door 4567\n"});
  front_.arm(std::nullopt);
  serve(endpoint(kElsewhere, 443), [](int socket) {
    send_text(socket, "probe 0123\n");
    EXPECT_EQ(receive_all(socket).bytes.find("door"), std::string::npos);
  });
  expect_only(Reason::NotTls, "");
}

}  // namespace
}  // namespace sallyport::gate
