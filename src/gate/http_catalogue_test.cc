// The catalogue for plain HTTP requests (tests/data/front/http.tsv, and requests.tsv where it is not git's
// own), by every way that such a request may come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "gate/catalogue.h"
#include "gate/egress_grant.h"
#include "gate/fake_front.h"
#include "gate/invariants.h"
#include "gate/mutations.h"
#include "gate/spellings.h"

namespace sallyport::gate::testing {
namespace {

struct HttpCase {
  std::string name;
  std::string reason;  // "-": it is carried out
  std::string payload;
  std::string host = "forge.test";
  std::string sent = "";  // the upstream's head; "": whatever it is

  bool is_refused() const { return reason != "-"; }
};

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

constexpr std::string_view kGet = "GET /a HTTP/1.1\\r\\nHost: forge.test\\r\\n";
constexpr std::string_view kPost = "POST /a HTTP/1.1\\r\\nHost: forge.test\\r\\n";

std::vector<HttpCase> own_cases() {
  std::vector<HttpCase> cases;
  for (const auto& row : read_table("http.tsv")) {
    const std::string payload = with_macro(row.at(2), {{"$GET", kGet}, {"$POST", kPost}});
    HttpCase test{row.at(0), row.at(1), unescaped(payload)};
    if (payload.find("Host: keyed.test") != std::string::npos) test.host = "keyed.test";
    if (!test.is_refused()) test.sent = unescaped(row.at(3));
    cases.push_back(std::move(test));
  }
  return cases;
}

// Framing and fields are the same whatever is asked for.
std::vector<HttpCase> borrowed_cases() {
  static const std::set<std::string_view> kGitsOwn{"H13", "H14", "H15"};
  std::vector<HttpCase> cases;
  for (const Case& git : read_cases()) {
    if (kGitsOwn.contains(std::string_view(git.name).substr(0, git.name.find(' ')))) continue;
    std::string payload = git.payload;
    for (const std::string_view url : {"/acme/widget/info/refs?service=git-upload-pack",
                                       "/acme/widget/git-upload-pack", "/acme/widget/git-receive-pack"}) {
      payload = replaced(std::move(payload), url, "/a");
    }
    cases.push_back({git.name, git.reason, std::move(payload)});
  }
  return cases;
}

std::vector<HttpCase> all_cases() {
  std::vector<HttpCase> cases = own_cases();
  for (HttpCase& test : borrowed_cases()) cases.push_back(std::move(test));
  return cases;
}

// ---- the ways ----

struct Way {
  std::string name;
  std::function<Arrival(const std::string& host)> arrival;
  std::function<std::string(const HttpCase&)> payload;
  // What a Host that is another is there.
  std::set<std::string> host_mismatch;
};

std::string as_it_is(const HttpCase& test) {
  return test.payload;
}
// In the clear the ports are the other way round.
std::string with_ports_of_http(const HttpCase& test) {
  std::string swapped = replaced(test.payload, "test:80", "test:\x01");
  swapped = replaced(std::move(swapped), "test:443", "test:80");
  return replaced(std::move(swapped), "test:\x01", "test:443");
}
// In absolute-form, where the target is a path.
std::string for_the_proxy(const HttpCase& test) {
  std::string text = with_ports_of_http(test);
  const std::size_t slash = text.find('/');
  const std::size_t line_end = text.find_first_of("\r\n");
  if (slash == 0 || slash >= line_end || is_visible(text[slash - 1])) return text;
  return text.insert(slash, "http://" + test.host);
}

const std::vector<Way> kWays{
    {"under TLS", [](const auto& host) { return under_tls(host); }, as_it_is, {"host_mismatch"}},
    {"in the clear", [](const auto& host) { return in_clear(host); }, with_ports_of_http, {"host_mismatch"}},
    {"in the clear, to any address",
     [](const auto& /*host*/) { return in_clear_to_anybody(); },
     with_ports_of_http,
     {"host_not_allowed", "plain_http"}},
    {"through the proxy",
     [](const auto& /*host*/) { return at_the_proxy(); },
     for_the_proxy,
     {"bad_request"}},
};

bool is_asked_there(const HttpCase& test, const Way& way) {
  // A CONNECT belongs to a proxy: proxy.tsv has those.
  return way.name != "through the proxy" || !test.payload.starts_with("CONNECT ");
}

std::set<std::string> reasons(const HttpCase& test, const Way& way) {
  if (test.reason == "host_mismatch") return way.host_mismatch;
  std::set<std::string> reasons{test.reason};
  // What is neither a path nor one of a proxy's two forms.
  if (way.name == "through the proxy" && way.payload(test) == with_ports_of_http(test)) {
    reasons.insert("proxy_form");
  }
  return reasons;
}

std::string follow_up(const HttpCase& test, const Way& way) {
  return way.payload(
      {"", "-", "GET /a HTTP/1.1\r\nHost: " + test.host + "\r\nConnection: close\r\n\r\n", test.host});
}

Verdict serve(const HttpCase& test, const Way& way, std::vector<std::string> pieces) {
  static const policy::Grant kGrant = egress_grant();
  return serve_bytes(std::move(pieces), kGrant, way.arrival(test.host));
}
Verdict serve(const HttpCase& test, const Way& way) {
  return serve(test, way, {way.payload(test) + follow_up(test, way)});
}

// ---- the verdict ----

// The refused request's part of the lines, taken away; "" when it is none of `reasons`. A body streams: when
// it turns out malformed or too long, an upstream has got a part of it, which must not look whole.
std::string take_refusal(Verdict& verdict, const std::set<std::string>& reasons) {
  std::vector<std::string>& lines = verdict.lines;
  const bool streamed = !lines.empty() && lines.front() == "begin";
  const std::size_t at = streamed ? 1 : 0;
  if (lines.size() <= at) return "";
  const std::string& line = lines[at];
  const std::string reason = line.substr(line.find(' ') + 1);
  if (!line.starts_with(streamed ? "end " : "refused ") || !reasons.contains(reason)) return "";
  if (streamed) {
    if (verdict.sent.empty() || verdict.sent.front().complete) return "";
    verdict.sent.erase(verdict.sent.begin());
  }
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  return reason;
}

// Whether another request is served behind the refused one. Where its reading is clear and it has a body,
// that depends on how much of the body had come.
bool may_go_on(std::string_view reason) {
  return !ends_connection(reason_from_code(reason).value());
}
bool has_body(const HttpCase& test) {
  return !test.payload.ends_with("\r\n\r\n") || test.payload.ends_with("\r\n0\r\n\r\n");
}

std::string describe(const Verdict& verdict) {
  std::string text = ::testing::PrintToString(verdict.lines) + "\n" + verdict.answer;
  for (const auto& sent : verdict.sent) text += "\nsent to " + sent.origin + ": " + sent.bytes;
  return text;
}

// What became of the case and of a good request behind it; "" when it is what the table says.
std::string fault_of(const HttpCase& test, const Way& way, Verdict verdict) {
  if (std::string broken = broken_invariant(verdict); !broken.empty()) return broken;
  const std::string all = describe(verdict);
  bool goes_on = true;
  if (test.is_refused()) {
    const std::string reason = take_refusal(verdict, reasons(test, way));
    if (reason.empty()) return "the refusal: " + all;
    goes_on = may_go_on(reason) && (!has_body(test) || !verdict.lines.empty());
    const int status = info(*reason_from_code(reason)).status;
    if (!verdict.answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ")) return "the status: " + all;
  } else {
    if (verdict.sent.empty() || !verdict.sent.front().complete) return "nothing was sent: " + all;
    if (!test.sent.empty() && head_of(verdict.sent.front().bytes) != test.sent)
      return "what was sent: " + all;
    if (verdict.lines.size() < 2 || verdict.lines[1] != "end none") return "the lines: " + all;
    verdict.lines.erase(verdict.lines.begin(), verdict.lines.begin() + 2);
    verdict.sent.erase(verdict.sent.begin());
  }
  const std::vector<std::string> rest =
      goes_on ? std::vector<std::string>{"begin", "end none"} : std::vector<std::string>{};
  if (verdict.lines != rest || verdict.sent.size() != (goes_on ? 1U : 0U)) return "what followed: " + all;
  if (verdict.answers() != (goes_on ? 2U : 1U)) return "the answers: " + all;
  return "";
}

TEST(HttpCatalogue, CoversItsFamilies) {
  std::set<std::string> families;
  std::set<std::string> names;
  for (const HttpCase& test : own_cases()) {
    families.insert(test.name.substr(0, test.name.find(' ')));
    EXPECT_TRUE(names.insert(test.name).second) << test.name << " stands there twice";
    EXPECT_TRUE(!test.is_refused() || reason_from_code(test.reason)) << test.name;
  }
  EXPECT_THAT(families, ::testing::IsSupersetOf(
                            {"H1", "H2", "H10", "H12", "H13", "H14", "H15", "H16", "G17", "G18", "G20"}));
  EXPECT_GT(borrowed_cases().size(), 200U);
}

TEST(HttpCatalogue, EveryCaseComesToItsVerdictByEveryWay) {
  for (const Way& way : kWays) {
    for (const HttpCase& test : all_cases()) {
      if (!is_asked_there(test, way)) continue;
      EXPECT_EQ(fault_of(test, way, serve(test, way)), "") << test.name << ", " << way.name;
    }
  }
}

TEST(HttpCatalogue, TheVerdictDoesNotDependOnHowTheBytesAreCut) {
  constexpr std::size_t kMaxCuts = 24;
  constexpr std::size_t kMostSingleBytes = 2000;
  std::mt19937 random(1);
  for (const Way& way : kWays) {
    for (const HttpCase& test : all_cases()) {
      if (!is_asked_there(test, way)) continue;
      const std::string bytes = way.payload(test) + follow_up(test, way);
      for (std::size_t i = 0; i < kMaxCuts; ++i) {
        const std::size_t cut = 1 + random() % (bytes.size() - 1);
        ASSERT_EQ(fault_of(test, way, serve(test, way, {bytes.substr(0, cut), bytes.substr(cut)})), "")
            << test.name << ", " << way.name << ", cut at " << cut;
      }
      if (bytes.size() > kMostSingleBytes) continue;  // gate.Catalogue has the long ones
      std::vector<std::string> single;
      for (const char byte : bytes) single.emplace_back(1, byte);
      EXPECT_EQ(fault_of(test, way, serve(test, way, single)), "") << test.name << ", " << way.name;
    }
  }
}

TEST(HttpCatalogue, TheVerdictIsTheSameInOtherSpellings) {
  for (const Way& way : kWays) {
    for (HttpCase test : all_cases()) {
      if (!is_asked_there(test, way) || test.name.starts_with("H21 ")) continue;
      test.sent = "";  // another field may be there, and in another order
      for (const auto& [how, payload] : other_spellings(test.payload)) {
        HttpCase spelled = test;
        spelled.payload = payload;
        EXPECT_EQ(fault_of(spelled, way, serve(spelled, way)), "")
            << test.name << ", " << way.name << ", " << how;
      }
    }
  }
}

TEST(HttpCatalogue, NoMutationGetsMoreOutThanIsJudged) {
  constexpr int kMutations = 12;
  std::mt19937 random(1);
  int forwarded = 0;
  int refused = 0;
  for (const Way& way : kWays) {
    for (const HttpCase& test : all_cases()) {
      if (test.payload.size() > 5000) continue;
      const std::string bytes = way.payload(test) + follow_up(test, way);
      for (int i = 0; i < kMutations; ++i) {
        const std::string mutated = mutation_of(bytes, random);
        const Verdict verdict = serve(test, way, {mutated});
        ASSERT_EQ(broken_invariant(verdict), "") << way.name << ": " << escaped(mutated);
        forwarded += static_cast<int>(verdict.sent.size());
        refused += static_cast<int>(verdict.lines.size() - 2 * verdict.judged.size());
      }
    }
  }
  EXPECT_GT(forwarded, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace sallyport::gate::testing
