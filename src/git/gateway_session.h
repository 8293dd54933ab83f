// For tests of the gateway: a session with three rules, the requests that git sends, and what to expect of
// the audit log.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "audit/fake_recorder.h"
#include "forward/fake_upstream.h"
#include "git/gateway.h"
#include "git/pktline.h"
#include "http/fake_stream.h"

namespace sallyport::git {
using namespace std::string_literals;
using forward::FakeOpener;
using forward::UpstreamScript;
using http::FakeStream;

inline const std::string kZero(40, '0');
inline const std::string kOne(40, '1');

inline policy::GitRule rule(std::string_view repo, policy::Access access, std::string credential, int line) {
  return {policy::RepoPattern::parse(repo, policy::HostKind::Generic).value(),
          access,
          std::move(credential),
          {"sallyport.toml", line}};
}

// A session with three rules, one client connection and one upstream behind two openers.
struct Session {
  policy::Grant grant{.git = {rule("forge.test/acme/widget", policy::Access::Push, "forge", 3),
                              rule("forge.test/acme/docs", policy::Access::Fetch, "forge", 8),
                              rule("forge.test/open/*", policy::Access::Fetch, "", 13)},
                      .hosts = {}};
  audit::FakeRecorder recorder;
  UpstreamScript vault_script;
  UpstreamScript direct_script;
  FakeOpener vault{vault_script};
  FakeOpener direct{direct_script};
  forward::Live live;
  FakeStream stream;
  http::Connection connection{stream, 443};
  std::vector<Fate> fates;

  explicit Session(std::vector<std::string> input, FakeStream::End end = FakeStream::End::Silence)
      : stream(std::move(input), end) {}

  // Serves that many requests of the connection, or fewer when one says that it was the last.
  net::Task<bool> serve_requests(int count) {
    const Context context{grant, recorder, vault, direct, live};
    const ClientSide client{audit::Entry::Tls, "192.0.2.1:443", policy::HostName::parse("forge.test").value(),
                            443};
    for (; count > 0; --count) {
      auto head = co_await connection.next_request();
      if (!head || !*head) co_return false;
      fates.push_back(co_await serve(context, client, connection, std::move(**head)));
      if (fates.back() == Fate::Close) break;
    }
    co_return true;
  }
  const std::string& run(int count = 1) {
    EXPECT_TRUE(http::run_alone(serve_requests(count)));
    EXPECT_EQ(vault_script.alive, 0);
    return stream.output;
  }
  std::size_t opened() const { return vault_script.opened.size() + direct_script.opened.size(); }
};

inline std::string get(const std::string& target, const std::string& more = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: forge.test\r\n" + more + "\r\n";
}
inline std::string post(const std::string& target, const std::string& type, const std::string& body,
                        const std::string& more = {}) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: forge.test\r\nContent-Type: application/x-git-{}-request\r\n"
      "Content-Length: {}\r\n{}\r\n{}",
      target, type, body.size(), more, body);
}
inline std::string chunked_post(const std::string& target, const std::string& type, const std::string& body,
                                const std::string& more = {}) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: forge.test\r\nContent-Type: application/x-git-{}-request\r\n"
      "Transfer-Encoding: chunked\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
      target, type, more, body.size(), body);
}
inline std::string push_list(const std::string& capabilities = "report-status side-band-64k",
                             const std::string& new_id = kOne) {
  std::string out;
  append_pkt(out, kZero + " " + new_id + " refs/heads/main\0 "s + capabilities);
  return out.append(kFlushPkt);
}
inline std::string fetch_post(const std::string& repo = "/acme/widget") {
  return post(repo + "/git-upload-pack", "upload-pack", "0011want something");
}
inline std::string push_post(const std::string& repo = "/acme/widget") {
  return post(repo + "/git-receive-pack", "receive-pack", push_list() + "PACK...");
}
inline std::string info_refs(const std::string& repo, const std::string& service) {
  return get(repo + "/info/refs?service=git-" + service);
}

inline void answer_with(UpstreamScript& script, const std::string& type, std::vector<std::string> body) {
  script.head.headers = {{"content-type", "application/x-git-" + type}};
  script.body = std::move(body);
}

inline std::string body_of(const std::string& output) {
  return output.substr(output.find("\r\n\r\n") + 4);
}

inline void expect_begin_and_end(const std::vector<audit::Event>& events, Reason reason) {
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, audit::Kind::Begin);
  EXPECT_EQ(events[0].reason, Reason::None);
  EXPECT_EQ(events[1].kind, audit::Kind::End);
  EXPECT_EQ(events[1].reason, reason) << code(events[1].reason) << ": " << events[1].detail;
  EXPECT_EQ(events[0].request, events[1].request);
  EXPECT_EQ(events[0].request.size(), 16U);
}

}  // namespace sallyport::git
