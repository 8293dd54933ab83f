// The catalogue of what may be asked of an explicit proxy (tests/data/front/proxy.tsv): each request has one
// reading or none, however its bytes arrive and are spelled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gate/catalogue.h"
#include "gate/spellings.h"
#include "http/connection.h"
#include "http/fake_stream.h"
#include "http/reply.h"

namespace sallyport::gate::testing {
namespace {

// What a smuggler hopes to be read as a request of its own.
const std::string kNext =
    "GET http://api.ok.test/next HTTP/1.1\r\nHost: api.ok.test\r\nConnection: close\r\n\r\n";
const std::string kNextReading = "GET api.ok.test:80 /next;";

struct ProxyCase {
  std::string name;
  std::string reading;  // as the table has it
  std::string payload;

  bool is_refused() const { return reading.find(' ') == std::string::npos; }
  // Of the case with kNext behind it.
  std::string all_readings() const {
    if (is_refused()) return reading + ";";
    return reading + ";" + (reading.starts_with("CONNECT ") ? "tunnel " + kNext : kNextReading);
  }
};

std::vector<ProxyCase> read_proxy_cases() {
  std::vector<ProxyCase> cases;
  for (const auto& row : read_table("proxy.tsv")) {
    const std::string payload = with_macro(
        row.at(2), {{"$CONNECT", "CONNECT api.ok.test:443 HTTP/1.1\\r\\nHost: api.ok.test:443\\r\\n"},
                    {"$GET", "GET http://api.ok.test/a HTTP/1.1\\r\\nHost: api.ok.test\\r\\n"}});
    cases.push_back({row.at(0), row.at(1), unescaped(payload)});
  }
  return cases;
}

std::string reading_of(const http::RequestHead& head) {
  std::string text = head.method + " " + head.host.host.str() + ":" + std::to_string(head.host.port);
  if (!head.target.empty()) text += " " + head.target;
  return text + ";";
}

// Each request's reading; the reason's code of one that is refused, behind which nothing is read any more.
net::Task<std::string> read_all(http::Connection& connection) {
  std::string readings;
  while (true) {
    auto head = co_await connection.next_request();
    if (!head) co_return readings + std::string(code(head.error().reason)) + ";";
    if (!*head) co_return readings;
    readings += reading_of(**head);
    if ((*head)->is_connect()) {
      auto early = co_await connection.open_tunnel();
      std::string rest(kNext.size(), '\0');
      for (std::size_t got = 1; got > 0;) {
        got = (co_await connection.stream().read_some(rest)).value();
        *early += rest.substr(0, got);
      }
      co_return readings + "tunnel " + *early;
    }
    if (!co_await connection.drain_body(100)) co_return readings + "?";
    if (!co_await connection.begin_response(204, {}, std::nullopt)) co_return readings + "?";
    if (!co_await connection.end_response() || !connection.reusable()) co_return readings;
  }
}

std::string readings(std::vector<std::string> pieces) {
  http::FakeStream stream(std::move(pieces));
  http::Connection connection(stream, 0, policy::Timeouts{}.request_head, http::Entry::Proxy);
  return http::run_alone(read_all(connection));
}

TEST(ProxyCatalogue, CoversItsFamilies) {
  std::set<std::string> families;
  std::set<std::string> names;
  for (const ProxyCase& test : read_proxy_cases()) {
    families.insert(test.name.substr(0, test.name.find(' ')));
    EXPECT_TRUE(names.insert(test.name).second) << test.name << " stands there twice";
    EXPECT_TRUE(!test.is_refused() || reason_from_code(test.reading)) << test.name;
  }
  EXPECT_THAT(families, ::testing::IsSupersetOf({"C2", "C3", "C4", "C15", "A22", "A24", "A29", "A30", "A31",
                                                 "A32", "A35", "H10", "H18", "H21", "G1", "G13", "good"}));
}

TEST(ProxyCatalogue, EveryCaseHasItsReadingHoweverItsBytesAreCut) {
  constexpr std::size_t kMaxCuts = 300;  // of the long ones: the last of them, where the verdict falls
  for (const ProxyCase& test : read_proxy_cases()) {
    const std::string bytes = test.payload + kNext;
    EXPECT_EQ(readings({bytes}), test.all_readings()) << test.name;
    for (std::size_t cut = bytes.size() > kMaxCuts ? bytes.size() - kMaxCuts : 1; cut < bytes.size(); ++cut) {
      ASSERT_EQ(readings({bytes.substr(0, cut), bytes.substr(cut)}), test.all_readings())
          << test.name << ", cut at " << cut;
    }
    std::vector<std::string> single;
    for (const char byte : bytes) single.emplace_back(1, byte);
    EXPECT_EQ(readings(single), test.all_readings()) << test.name << ", byte by byte";
    EXPECT_EQ(readings({kNext.substr(0, kNext.find("Connection")) + "\r\n" + bytes}),
              kNextReading + test.all_readings())
        << test.name << ", on a connection that is kept alive";
  }
}

TEST(ProxyCatalogue, TheReadingIsTheSameInOtherSpellings) {
  for (const ProxyCase& test : read_proxy_cases()) {
    for (const auto& [how, payload] : other_spellings(test.payload)) {
      EXPECT_EQ(readings({payload + kNext}), test.all_readings()) << test.name << ", " << how;
    }
  }
}

TEST(ProxyCatalogue, AHostHasTheReadingThatItHasEverywhere) {
  for (const auto& row : read_table("hosts.tsv")) {
    const std::string host = unescaped(row.at(0));
    const std::string& reason = row.at(1);
    SCOPED_TRACE(row.at(0));
    const std::string connect = readings({"CONNECT " + host + ":443 HTTP/1.1\r\n\r\n"});
    const std::string get = readings({"GET http://" + host + "/a HTTP/1.1\r\nHost: " + host + "\r\n\r\n"});
    if (reason == "-") {
      EXPECT_EQ(connect, "CONNECT forge.test:443;tunnel ");
      EXPECT_EQ(get, "GET forge.test:80 /a;");
    } else if (reason == "host_not_allowed") {  // a name, which policy is to judge
      EXPECT_EQ(connect, "CONNECT " + host + ":443;tunnel ");
      EXPECT_EQ(get, "GET " + host + ":80 /a;");
    } else {
      EXPECT_EQ(connect, reason + ";");
      EXPECT_EQ(get, reason + ";");
    }
  }
}

}  // namespace
}  // namespace sallyport::gate::testing
