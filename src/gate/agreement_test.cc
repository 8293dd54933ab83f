// Thousands of names and URLs near a policy's rules: by whichever way one is asked for, it has one verdict.
//
// What "the same" means, way by way:
//   - TLS: the name in a ClientHello, to any address, to the address that DNS gave for it, and behind a
//     CONNECT: the same reason, or allowed.
//   - HTTP in the clear: a Host, to any address and to the name's own, and absolute-form: the same reason, or
//     allowed. Behind a CONNECT too, once that is allowed: it asks for a port before there is a URL, so when
//     it is refused, every other way must refuse as well, but may have a reason that is more particular.
//   - Any other port: behind a CONNECT and at the name's own address: the same reason, or allowed.
//   Absolute-form
//     is to either of them as above.
//   - DNS: a name has an address when some port of it is open; else every way refuses it. A name that is not
//     allowed or is an address in disguise has that very reason everywhere, but that DNS calls a name that
//     is malformed one that is not allowed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "gate/egress_grant.h"
#include "gate/whole_front.h"

namespace sallyport::gate::testing {
namespace {

using enum policy::Method;

void pin(policy::Grant& grant, std::string_view host) {
  // Nothing listens there, so that whatever is allowed ends at once.
  const policy::UpstreamHost nowhere{.address = policy::parse_pinned_address("127.0.0.1:1")};
  const bool below = host.starts_with("*.");
  if (below) host.remove_prefix(2);
  (below ? grant.hosts_below : grant.hosts).insert_or_assign(*policy::HostName::parse(host), nowhere);
}

void allow(policy::Grant& grant, policy::AllowRule rule, std::vector<std::uint16_t> ports,
           policy::TlsMode tls = policy::TlsMode::Inspect) {
  rule.ports = std::move(ports);
  rule.tls = tls;
  pin(grant, rule.hosts.front().str());
  grant.allow.push_back(std::move(rule));
}

void deny(policy::Grant& grant, std::string_view host, const std::vector<std::string>& paths = {}) {
  policy::DenyRule rule{.hosts = {*policy::HostPattern::parse(host)}};
  for (const auto& path : paths) rule.paths.push_back(*policy::PathPattern::parse(path));
  grant.deny.push_back(std::move(rule));
}

policy::Grant near_grant() {
  policy::Grant grant;
  allow(grant, allow_rule("api.ok.test", {Get, Head}, {"/", "/a", "/v1/**"}), {443, 80});
  allow(grant, allow_rule("api.ok.test", {Post}, {"/up"}), {443, 80});
  allow(grant, allow_rule("*.wild.test", {Get}), {443, 80});
  allow(grant, allow_rule("odd.test", {Get}, {"/a"}), {8443});
  allow(grant, allow_rule("plain.test", {Get}, {"/a"}), {80});
  auto clear = allow_rule("clear.test", {Get}, {"/a"});
  clear.scheme = policy::Scheme::Http;
  allow(grant, std::move(clear), {8080});
  allow(grant, allow_rule("pin.test", {Get}), {443}, policy::TlsMode::Splice);
  allow(grant, allow_rule("*.pinned.test", {Get}), {443}, policy::TlsMode::Splice);
  deny(grant, "api.ok.test", {"/v1/secret/**"});
  deny(grant, "bad.wild.test");
  deny(grant, "*.worse.wild.test");
  deny(grant, "partly.pinned.test", {"/x"});
  grant.git.push_back({*policy::RepoPattern::parse("forge.test/acme/widget", policy::HostKind::Generic),
                       policy::Access::Fetch,
                       "",
                       {}});
  grant.tcp.push_back({*policy::HostName::parse("db.test"), 5432, {}});
  for (const char* host : {"forge.test", "db.test"}) pin(grant, host);
  return grant;
}

// ---- the policy's names, read as simply as can be ----

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, [](char c) { return is_alnum(c) || c == '-'; });
}

bool has_an_address(std::string name) {
  static const std::set<std::string_view> kNamed{"api.ok.test", "odd.test",   "plain.test", "clear.test",
                                                 "pin.test",    "forge.test", "db.test"};
  static const std::set<std::string_view> kDenied{"bad.wild.test", "partly.pinned.test"};
  name = lowered(name);
  if (name.ends_with('.')) name.pop_back();
  const auto labels = split(name, '.');
  if (name.size() > 253 || !std::ranges::all_of(labels, is_label)) return false;
  const bool below = name.ends_with(".wild.test") || name.ends_with(".pinned.test");
  return (kNamed.contains(name) || below) && !kDenied.contains(name) && !name.ends_with(".worse.wild.test");
}

// ---- names and URLs near them ----

struct Asked {
  std::string name;
  std::uint16_t port;
  std::string method;
  std::string path;
};

class Neighbours {
 public:
  Asked next() {
    Asked asked{pick(kNames), pick(kPorts), pick(kMethods), pick(kPaths)};
    for (unsigned changes = random_() % 3; changes > 0; --changes) asked.name = near(std::move(asked.name));
    for (unsigned changes = random_() % 2; changes > 0; --changes) near_path(asked.path);
    return asked;
  }

 private:
  template <typename List>
  const typename List::value_type& pick(const List& list) {
    return list[random_() % list.size()];
  }

  std::string near(std::string name) {
    if (name.empty()) return "a.test";
    const std::size_t at = random_() % name.size();
    const std::size_t dot = name.find('.');
    switch (random_() % 12) {
      case 0:
        return pick(kLabels) + "." + name;
      case 1:
        return dot == std::string::npos || dot + 1 == name.size() ? name : name.substr(dot + 1);
      case 2:
        return pick(kLabels) + name;
      case 3:
        return name + "." + pick(kLabels);
      case 4:
        for (char& c : name) c = is_lower(c) && random_() % 2 == 0 ? static_cast<char>(c - 'a' + 'A') : c;
        return name;
      case 5:
        return name + ".";
      case 6:
        return name.insert(at, pick(kInside));
      case 7:
        return name.erase(at, 1);
      case 8:
        std::ranges::replace(name, 'o', '0');
        return name;
      case 9:
        std::ranges::replace(name, 'i', 'l');
        return name;
      case 10:
        return random_() % 4 == 0 ? std::string(pick(kAddresses)) : name;
      default:
        return dot == std::string::npos ? name : name.replace(dot, 1, pick(kInside));
    }
  }
  void near_path(std::string& path) { path.insert(1 + random_() % path.size(), pick(kInPaths)); }

  static inline const std::vector<std::string> kNames{
      "api.ok.test",        "wild.test",         "a.wild.test",     "b.c.wild.test",
      "bad.wild.test",      "x.worse.wild.test", "worse.wild.test", "odd.test",
      "plain.test",         "clear.test",        "pin.test",        "x.pinned.test",
      "partly.pinned.test", "forge.test",        "db.test",         "evil.test"};
  static inline const std::vector<std::uint16_t> kPorts{443, 443, 443, 80, 80, 80, 80, 8443, 8080, 5432, 22};
  static inline const std::vector<std::string> kMethods{"GET", "GET", "GET", "HEAD", "POST", "DELETE"};
  static inline const std::vector<std::string> kPaths{"/",
                                                      "/a",
                                                      "/a",
                                                      "/v1/x",
                                                      "/v1/x/y?z=/../",
                                                      "/v1/secret/x",
                                                      "/V1/Secret/x",
                                                      "/up",
                                                      "/b",
                                                      "/o/r/info/refs",
                                                      "/acme/widget/info/refs?service=git-upload-pack",
                                                      "/dns-query"};
  static inline const std::vector<std::string> kLabels{
      "a", "x", "evil", "xn--e1a", "bad", "worse", "localhost", std::string(63, 'a'), std::string(64, 'a')};
  static inline const std::vector<std::string> kInside{
      "-",    "_", "..", "%2e", "@", ":", "/", "#", "\\", "*", ",", "\xe3\x80\x82", std::string(1, '\0'),
      "\x7f", "--"};
  static inline const std::vector<std::string> kAddresses{"127.0.0.1",
                                                          "127.1",
                                                          "0x7f.1",
                                                          "0177.0.0.1",
                                                          "2130706433",
                                                          "0",
                                                          "[::1]",
                                                          "[::ffff:127.0.0.1]",
                                                          "[64:ff9b::7f00:1]",
                                                          "169.254.169.254",
                                                          "1.2.3.4.",
                                                          "[fe80::1%25lo]",
                                                          "1.2.3.4.5",
                                                          "localhost"};
  static inline const std::vector<std::string> kInPaths{"/",  "/../", "/./", "%2e%2e/", "%2f", "%61", ";x",
                                                        "?x", "A",    "%00", "\\",      "x",   "%25"};
  std::mt19937 random_{1};
};

// ---- the ways ----

using Verdicts = std::map<std::string, std::string>;

class Ways {
 public:
  std::string in_dns(const std::string& name) {
    const auto query = dns_query(name);
    return query ? verdict_in_dns(front_, *query) : "";
  }
  // `address`: the name's own.
  Verdicts ask(const Asked& asked, const std::optional<os::Endpoint>& address) {
    const bool tls = asked.port == 443 || asked.port == 8443;
    const bool clear = asked.port == 80 || asked.port == 8080;
    const std::string host = asked.port == 80 || !clear ? asked.name : asked.name + ":8080";
    const std::string said = tls     ? hello_to(asked.name)
                             : clear ? request_for(asked.method, asked.path, host)
                                     : "SSH-2.0-x\r\n";
    Verdicts verdicts{{"connect", verdict(kProxyDoor, connect_to_host(asked.name, asked.port) + said)}};
    if (asked.port == 443 || asked.port == 80) {
      verdicts["any address"] = verdict(endpoint(kAnyAddress, asked.port), said);
    }
    if (clear) {
      verdicts["absolute-form"] =
          verdict(kProxyDoor, request_for(asked.method, "http://" + host + asked.path, host));
    }
    if (address) verdicts["its address"] = verdict(*address, said);
    return verdicts;
  }
  std::optional<os::Endpoint> address_of(const Asked& asked) {
    const auto host = policy::HostName::parse(asked.name);
    if (!host) return std::nullopt;
    return endpoint(front_.addresses().address_of(*host).str().c_str(), asked.port);
  }

 private:
  std::string verdict(const os::Endpoint& destination, const std::string& said) {
    return verdict_of(front_.serve(destination, {said}));
  }
  WholeFront front_{near_grant()};
};

bool is_refusal(const std::string& verdict) {
  return verdict != "allowed" && reason_from_code(verdict).has_value();
}

// "" when the ways agree.
std::string disagreement(const Asked& asked, const std::string& in_dns, Verdicts verdicts) {
  const std::string connect = verdicts.extract("connect").mapped();
  if (connect != "allowed" && !is_refusal(connect)) return "a CONNECT came to " + connect;
  if (asked.port != 443 && asked.port != 80 && verdicts.contains("its address")) {
    if (verdicts.extract("its address").mapped() != connect) return "its address";
  }
  for (const auto& [way, verdict] : verdicts) {
    if (verdict != "allowed" && !is_refusal(verdict)) return way + " came to " + verdict;
    if (verdict != verdicts.begin()->second) return way;
  }
  if (verdicts.empty()) verdicts["connect"] = connect;
  const std::string& verdict = verdicts.begin()->second;
  const bool url = asked.port == 80 || asked.port == 8080;
  if (verdict != connect && !(url && is_refusal(verdict) && is_refusal(connect))) return "connect";
  // That a target cannot be read is found before its host is judged.
  const bool malformed = verdict == "bad_request" || verdict == "target_too_long";
  const bool about_the_name = connect == "host_not_allowed" || connect == "ip_literal";
  if (about_the_name && verdict != connect && !malformed) return "the name";
  if (in_dns.empty()) {
    return connect == "bad_request" || connect == "ip_literal" ? "" : "a name that cannot be asked for";
  }
  if (in_dns == "allowed") return about_the_name || (connect == "bad_request" && !url) ? "dns" : "";
  if (connect == "allowed") return "dns";
  const bool same_of_name = connect == in_dns || (in_dns == "host_not_allowed" && connect == "bad_request") ||
                            (in_dns == "host_not_allowed" && asked.name.starts_with('['));
  const bool is_named = in_dns != "host_not_allowed" && in_dns != "ip_literal";
  return same_of_name || (is_named && !about_the_name) ? "" : "dns";
}

TEST(Agreement, TenThousandNamesAndUrlsHaveTheSameVerdictByEveryWay) {
  Neighbours neighbours;
  Ways ways;
  std::map<std::string, int> counts;
  for (int i = 0; i < 10'000; ++i) {
    const Asked asked = neighbours.next();
    const std::string in_dns = ways.in_dns(asked.name);
    ASSERT_EQ(in_dns == "allowed", has_an_address(asked.name)) << escaped(asked.name) << ": " << in_dns;
    const Verdicts verdicts =
        ways.ask(asked, in_dns == "allowed" ? ways.address_of(asked) : std::optional<os::Endpoint>());
    ASSERT_EQ(disagreement(asked, in_dns, verdicts), "")
        << asked.method << " " << escaped(asked.name) << ":" << asked.port << escaped(asked.path) << ": DNS "
        << in_dns << ", " << ::testing::PrintToString(verdicts);
    for (const auto& [way, verdict] : verdicts) ++counts[verdict];
    ++counts["dns " + in_dns];
  }
  // Else it would prove little.
  for (const char* verdict :
       {"allowed", "bad_request", "ip_literal", "host_not_allowed", "denied_by_rule", "port_not_allowed",
        "plain_http", "path_not_allowed", "method_not_granted", "repo_not_granted", "dns allowed",
        "dns host_not_allowed", "dns denied_by_rule", "dns ip_literal"}) {
    EXPECT_GT(counts[verdict], 20) << verdict << " of " << ::testing::PrintToString(counts);
  }
}

// ---- URLs under TLS ----

// One line for each request, in order: "allowed" or the refusal's code.
std::vector<std::string> verdicts_of(const std::vector<audit::Event>& events) {
  std::vector<std::string> verdicts;
  for (const audit::Event& event : events) {
    if (event.kind == audit::Kind::Begin) verdicts.emplace_back("allowed");
    if (event.kind == audit::Kind::Refused) verdicts.emplace_back(code(event.reason));
  }
  return verdicts;
}

// The head of the answer to a CONNECT.
bool read_head(int socket) {
  std::string head;
  for (char byte = 0; !head.ends_with("\r\n\r\n"); head += byte) {
    if (::recv(socket, &byte, 1, 0) != 1) return false;
  }
  return head.starts_with("HTTP/1.1 200 ");
}

// As many connections as it takes: a request that cannot be read ends its own.
std::vector<std::string> verdicts_under_tls(WholeFront& front, const os::Endpoint& destination,
                                            const std::string& host, const std::vector<Asked>& urls) {
  std::vector<std::string> verdicts;
  while (verdicts.size() < urls.size()) {
    const Served served = front.serve_beside(destination, [&](int socket) {
      if (destination == kProxyDoor) {
        send_text(socket, connect_to_host(host, 443));
        ASSERT_TRUE(read_head(socket));
      }
      egress::TestClient client(socket, {.sni = host});
      ASSERT_TRUE(client.connect());
      std::string requests;
      for (std::size_t i = verdicts.size(); i < urls.size(); ++i) {
        requests += request_for(urls[i].method, urls[i].path, host);
      }
      client.write(requests);
      client.end();
      client.read_all();
    });
    const auto more = verdicts_of(served.events);
    if (more.empty()) break;
    verdicts.insert(verdicts.end(), more.begin(), more.end());
  }
  return verdicts;
}

TEST(Agreement, AUrlHasTheSameVerdictUnderTlsInATunnelAndInTheClear) {
  WholeFront front(near_grant());
  Neighbours neighbours;
  for (const std::string host : {"api.ok.test", "deep.a.wild.test"}) {
    std::vector<Asked> urls;
    while (urls.size() < 100) urls.push_back(neighbours.next());
    const auto direct = verdicts_under_tls(front, endpoint(kAnyAddress, 443), host, urls);
    EXPECT_EQ(verdicts_under_tls(front, kProxyDoor, host, urls), direct);
    ASSERT_EQ(direct.size(), urls.size());
    for (std::size_t i = 0; i < urls.size(); ++i) {
      const auto in_clear =
          front.serve(endpoint(kAnyAddress, 80), {request_for(urls[i].method, urls[i].path, host)});
      // What would be git's is read more closely where git may be.
      const bool gits = verdict_of(in_clear) == "repo_not_granted";
      if (!gits) EXPECT_EQ(direct[i], verdict_of(in_clear)) << urls[i].method << " " << urls[i].path;
      if (gits) EXPECT_NE(direct[i], "allowed");
    }
    EXPECT_GT(std::ranges::count(direct, "allowed"), 5);
    EXPECT_GT(std::ranges::count(direct, "bad_request"), 5);
  }
}

}  // namespace
}  // namespace sallyport::gate::testing
