#include "gate/front.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "egress/test_client.h"
#include "gate/front_fixture.h"

namespace sallyport::gate {
namespace {

using namespace std::string_literals;
using egress::TestClient;
using testing::endpoint;
using testing::FrontTest;
using testing::kApi;
using testing::kElsewhere;
using testing::kNobody;
using testing::kZed;
using testing::receive_all;
using testing::send_text;

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

// Some server may have a repository at its root, or in one folder: no rule for HTTP opens that.
TEST_F(FrontTest, NeverTakesAUrlOfGitsForAPageOfAHostWithOtherRules) {
  policy::AllowRule wide;
  wide.hosts = {*policy::HostPattern::parse("api.ok.test"), *policy::HostPattern::parse("pages.ok.test")};
  grant_.allow.push_back(wide);
  for (const char* host : {"api.ok.test", "pages.ok.test"}) {
    for (const char* target :
         {"/info/refs?service=git-upload-pack", "/x.git/info/refs?service=git-receive-pack",
          "/git-upload-pack", "/x/git-receive-pack", "/a/b/c/d/info/refs?service=git-upload-pack"}) {
      SCOPED_TRACE(std::string(host) + target);
      std::string answer;
      serve(endpoint(kElsewhere, 443), [&](int socket) {
        TestClient client(socket, {.sni = host});
        ASSERT_TRUE(client.connect());
        client.write("GET "s + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
        answer = client.read_all();
        client.end();
      });
      EXPECT_NE(answer.find(info(Reason::RepoNotGranted).sentence), std::string::npos) << answer;
      expect_only(Reason::RepoNotGranted, host);
    }
    std::string answer;
    serve(endpoint(kElsewhere, 443), [&](int socket) {
      TestClient client(socket, {.sni = host});
      ASSERT_TRUE(client.connect());
      client.write("GET /x.git/info/refs.html HTTP/1.1\r\nHost: "s + host + "\r\nConnection: close\r\n\r\n");
      answer = client.read_all();
      client.end();
    });
    EXPECT_EQ(direct_.opened, 1) << answer;
    direct_.opened = 0;
    recorder_.events.clear();
  }
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
