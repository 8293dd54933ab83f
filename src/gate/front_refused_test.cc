// Names that the policy refuses, as clients under TLS hear of it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "egress/test_client.h"
#include "gate/front_fixture.h"

namespace sallyport::gate {
namespace {

using egress::TestClient;
using testing::endpoint;
using testing::FrontTest;
using testing::kElsewhere;
using testing::receive_all;
using testing::send_text;

class RefusedNames : public FrontTest {};

TEST_F(RefusedNames, TellsAClientThatTrustsUsWhyANameIsRefused) {
  policy::DenyRule denied;
  denied.hosts = {*policy::HostPattern::parse("zed.ok.test")};
  denied.source = {"sallyport.toml", 9};
  grant_.deny.push_back(denied);
  struct Case {
    std::string sni;
    std::string request;
    Reason reason;
    std::string_view to_add;
    std::string_view rule;
  };
  const std::string host = " HTTP/1.1\r\nHost: ";
  const std::vector<Case> cases{
      {"evil.test", "GET /a/b?key=1" + host + "evil.test\r\n\r\n", Reason::HostNotAllowed,
       "[[allow]]\nhost = \"evil.test\"\nmethods = [\"GET\"]\npaths = [\"/a/b\"]\n", ""},
      {"evil.test", "GET /o/r/info/refs?service=git-upload-pack" + host + "evil.test\r\n\r\n",
       Reason::HostNotAllowed, "[[git]]\nrepo = \"evil.test/o/r\"\naccess = \"fetch\"\n", ""},
      {"evil.test", "POST /x" + host + "evil.test\r\nContent-Length: 9\r\n\r\nabc", Reason::HostNotAllowed,
       "methods = [\"POST\"]", ""},
      {"evil.test", "GET /x" + host + "api.ok.test\r\n\r\n", Reason::HostNotAllowed, "host = \"evil.test\"",
       ""},
      {"plain.ok.test", "GET /x" + host + "plain.ok.test\r\n\r\n", Reason::PortNotAllowed,
       "host = \"plain.ok.test\"", ""},
      {"zed.ok.test", "GET /x" + host + "zed.ok.test\r\n\r\n", Reason::DeniedByRule, "", "sallyport.toml:9"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.request);
    std::string answer;
    serve(endpoint(kElsewhere, 443), [&](int socket) {
      TestClient client(socket, {.sni = test.sni, .authority = authority_});
      ASSERT_TRUE(client.connect());
      // The second one is not looked at.
      EXPECT_TRUE(client.write(test.request + "GET /again" + host + test.sni + "\r\n\r\n"));
      answer = client.read_all();
      client.end();
    });
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden\r\n")) << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find(info(test.reason).sentence), std::string::npos) << answer;
    EXPECT_NE(answer.find("\n" + test.sni + "\n"), std::string::npos) << answer;
    EXPECT_NE(answer.find(test.to_add), std::string::npos) << answer;
    EXPECT_EQ(answer.find("can allow it") != std::string::npos, !test.to_add.empty()) << answer;
    EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
    ASSERT_EQ(recorder_.events.size(), 1U);
    const audit::Event& event = recorder_.events.front();
    EXPECT_NE(answer.find("request " + event.request + "\n"), std::string::npos) << answer;
    EXPECT_EQ(event.entry, audit::Entry::Tls);
    EXPECT_EQ(event.scheme, "https");
    EXPECT_EQ(event.destination, endpoint(kElsewhere, 443).text());
    EXPECT_EQ(event.rule, test.rule);
    expect_only(test.reason, test.sni);
  }
}

TEST_F(RefusedNames, ProposesNoRuleWhereADenyDecides) {
  policy::DenyRule denied;
  denied.hosts = {*policy::HostPattern::parse("zed.ok.test")};
  grant_.deny.push_back(denied);
  std::string answer;
  serve(endpoint("198.18.0.1", 3128), [&](int socket) {
    send_text(socket, "CONNECT zed.ok.test:443 HTTP/1.1\r\n\r\n");
    ::shutdown(socket, SHUT_WR);
    answer = receive_all(socket).bytes;
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
  EXPECT_EQ(answer.find("can allow it"), std::string::npos) << answer;
  expect_only(Reason::DeniedByRule, "zed.ok.test");
}

TEST_F(RefusedNames, TellsAProgramInJsonWhyANameIsRefused) {
  std::string answer;
  serve(endpoint(kElsewhere, 443), [&](int socket) {
    TestClient client(socket, {.sni = "evil.test"});
    ASSERT_TRUE(client.connect());
    client.write("GET /v1 HTTP/1.1\r\nHost: evil.test\r\nAccept: application/json\r\n\r\n");
    answer = client.read_all();
  });
  EXPECT_NE(answer.find("Content-Type: application/json\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("{\"error\":\"host_not_allowed\",\"status\":403,"), std::string::npos) << answer;
  expect_only(Reason::HostNotAllowed, "evil.test");
}

TEST_F(RefusedNames, TellsWithAnEmptyPolicyToo) {
  grant_ = {};
  std::string answer;
  serve(endpoint(kElsewhere, 443), [&](int socket) {
    TestClient client(socket, {});
    ASSERT_TRUE(client.connect());
    client.write("GET / HTTP/1.1\r\nHost: api.ok.test\r\n\r\n");
    answer = client.read_all();
    client.end();
  });
  EXPECT_NE(answer.find(info(Reason::PolicyEmpty).sentence), std::string::npos) << answer;
  expect_only(Reason::PolicyEmpty, "api.ok.test");
}

// Whatever becomes of the connection, its one line has the policy's reason.
TEST_F(RefusedNames, RecordsARefusedNameHoweverItsConnectionGoesOn) {
  grant_.timeouts.request_head = std::chrono::milliseconds(1);
  const std::vector<std::pair<std::string_view, std::function<void(TestClient&)>>> cases{
      {"asks for nothing, and stays", [](TestClient& client) { EXPECT_EQ(client.read_all(), ""); }},
      {"asks for nothing, and leaves", [](TestClient& client) { client.end(); }},
      {"stops in its head",
       [](TestClient& client) {
         client.write("GET / HT");
         client.read_all();
       }},
      {"cannot be read",
       [](TestClient& client) {
         client.write("GET /\t HTTP/1.1\r\nHost: evil.test\r\n\r\n");
         EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 403 "));
       }},
  };
  for (const auto& [what, go_on] : cases) {
    SCOPED_TRACE(what);
    serve(endpoint(kElsewhere, 443), [&](int socket) {
      TestClient client(socket, {.sni = "evil.test"});
      ASSERT_TRUE(client.connect());
      go_on(client);
    });
    ASSERT_EQ(recorder_.events.size(), 1U);
    EXPECT_EQ(recorder_.events.front().method + recorder_.events.front().path, "");
    expect_only(Reason::HostNotAllowed, "evil.test");
  }
}

TEST_F(RefusedNames, RecordsARefusedNameWhoseClientDoesNotTakeOurCertificate) {
  const auto other = net::make_session_ca("fedcba9876543210");
  const std::vector<TestClient::Options> cases{
      {.sni = "evil.test", .authority = other->certificate.get()},
      {.sni = "evil.test", .alpn = "\2h2"},
  };
  for (const auto& options : cases) {
    serve(endpoint(kElsewhere, 443), [&](int socket) {
      TestClient client(socket, options);
      EXPECT_FALSE(client.connect());
    });
    ASSERT_EQ(recorder_.events.size(), 1U);
    expect_only(Reason::HostNotAllowed, "evil.test");
  }
}

}  // namespace
}  // namespace sallyport::gate
