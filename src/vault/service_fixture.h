// What the tests of the service share: an upstream that is a script, and a service that reaches it. For tests
// only.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/event.h"
#include "os/unix_socket.h"
#include "vault/client.h"
#include "vault/service.h"

namespace sallyport::vault {

enum class Answers : std::uint8_t { AtOnce, AfterBody, Never };

struct FakeUpstream {
  // The script.
  Answers answers = Answers::AfterBody;
  upstream::AnswerHead head{.status = 200, .headers = {{"content-type", "text/plain"}}, .body_bytes = {}};
  std::vector<std::string> pieces = {"answer"};
  std::optional<Error> open_error;
  std::optional<Error> body_error;  // instead of the answer's end
  bool takes_body = true;

  // What happened.
  std::vector<upstream::Request> requests;
  std::vector<std::string> authorizations;
  std::string body;
  int bodies_ended = 0;
  int aborted = 0;
};

class FakeExchange final : public upstream::Exchange {
 public:
  FakeExchange(net::Worker& worker, FakeUpstream& upstream)
      : upstream_(upstream), body_ended_(worker), aborted_(worker), pieces_(upstream.pieces) {}

  net::Task<Status> send_body(std::string_view bytes) override {
    if (!upstream_.takes_body) co_return fail(Reason::UpstreamClosed, "takes no body");
    upstream_.body += bytes;
    co_return Status();
  }
  net::Task<Status> end_body() override {
    ++upstream_.bodies_ended;
    body_ended_.set();
    co_return Status();
  }
  net::Task<Result<upstream::AnswerHead>> read_head() override {
    if (upstream_.answers == Answers::AfterBody) co_await body_ended_.wait();
    if (upstream_.answers == Answers::Never) co_await aborted_.wait();
    if (aborted_.is_set()) co_return fail(Reason::UpstreamClosed, "aborted");
    co_return upstream_.head;
  }
  net::Task<Result<std::size_t>> read_body(std::span<char> into) override {
    if (next_ == pieces_.size() && upstream_.body_error) co_return std::unexpected(*upstream_.body_error);
    if (next_ == pieces_.size()) co_return std::size_t{0};
    const std::string& piece = pieces_[next_++];
    std::ranges::copy(piece, into.begin());  // pieces of the tests are small
    co_return piece.size();
  }
  void abort() noexcept override {
    if (!aborted_.is_set()) ++upstream_.aborted;
    aborted_.set();
    body_ended_.set();
  }

 private:
  FakeUpstream& upstream_;
  net::Event body_ended_;
  net::Event aborted_;
  std::vector<std::string> pieces_;
  std::size_t next_ = 0;
};

inline policy::HostName host(std::string_view text) {
  return policy::HostName::parse(text).value();
}

inline Secret secret(std::string_view text) {
  auto made = Secret::with_capacity(text.size());
  EXPECT_TRUE(made && made->append(text));
  return std::move(*made);
}

// forge.test: widget may be pushed to with the credential "forge"; locked names one that is not loaded.
inline policy::Grant test_grant() {
  policy::Grant grant;
  const auto add = [&](std::string_view pattern, policy::Access access, std::string credential) {
    auto repo = policy::RepoPattern::parse(pattern, policy::HostKind::Generic).value();
    grant.hosts[repo.host()];
    grant.git.push_back({std::move(repo), access, std::move(credential), {"sallyport.toml", 7}});
  };
  add("forge.test/acme/widget", policy::Access::Push, "forge");
  add("forge.test/acme/locked", policy::Access::Fetch, "missing");
  return grant;
}

inline constexpr std::string_view kToken = "canary-0123456789";

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() { start({}); }

  // A new service, with limits of the test's choice.
  void start(LaneLimits limits, std::uint64_t uses_left = UINT64_MAX) {
    service_ = std::make_unique<Service>(
        worker_, Service::Setup{.session = "s1",
                                .grant = std::make_shared<const policy::Grant>(test_grant()),
                                .open =
                                    [this](upstream::Request request, upstream::Credential credential) {
                                      return open(std::move(request), std::move(credential));
                                    },
                                .report = [this](audit::Event event) -> Status {
                                  if (!accepts_events_) return fail(Reason::AuditUnavailable, "full");
                                  events_.push_back(std::move(event));
                                  return {};
                                },
                                .limits = limits,
                                .uses_left = uses_left});
    service_->set_credential("forge", secret(kToken));
    auto pair = os::socket_pair(os::SocketKind::Packet);
    ASSERT_TRUE(pair);
    service_->use_gate(std::move(pair->first));
    gate_ = std::move(pair->second);
  }

  // Runs the test's coroutine to its end.
  void run(net::Task<> body) {
    worker_.spawn("test", until_done(std::move(body)));
    worker_.run();
    EXPECT_TRUE(done_);
  }

  static upstream::Request request(upstream::BodyKind body, std::uint64_t body_bytes = 0,
                                   std::string_view target = "/acme/widget/git-receive-pack",
                                   std::size_t rule = 0) {
    return {.request_id = "r1",
            .rule = rule,
            .host = host("forge.test"),
            .port = 443,
            .method = target.contains('?') ? "GET" : "POST",
            .target = std::string(target),
            .headers = {{"accept", "*/*"}},
            .body = body,
            .body_bytes = body_bytes};
  }

  FakeUpstream upstream_;
  bool accepts_events_ = true;
  std::vector<audit::Event> events_;
  bool done_ = false;
  net::Worker worker_;
  std::unique_ptr<Service> service_;
  Fd gate_;  // the gate's end of the channel

 private:
  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request request,
                                                              upstream::Credential credential) {
    upstream_.requests.push_back(std::move(request));
    upstream_.authorizations.emplace_back(credential.line->expose());
    if (upstream_.open_error) co_return std::unexpected(*upstream_.open_error);
    co_return std::make_unique<FakeExchange>(worker_, upstream_);
  }
  net::Task<> until_done(net::Task<> body) {
    co_await std::move(body);
    done_ = true;
    worker_.stop();
  }
};

}  // namespace sallyport::vault
