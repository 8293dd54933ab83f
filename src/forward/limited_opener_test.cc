#include "forward/limited_opener.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "forward/fake_upstream.h"
#include "http/fake_stream.h"

namespace sallyport::forward {
namespace {

using http::FakeStream;
using http::run_alone;

upstream::Request to_api() {
  return {.host = *policy::HostName::parse("api.test"), .method = "GET", .target = "/"};
}

policy::Limits limits_of(std::optional<Rate> upload, std::optional<Rate> download) {
  policy::Limits limits;
  limits.upload = upload;
  limits.download = download;
  return limits;
}
constexpr Rate kTenBytesADay{.amount = 10, .per = std::chrono::hours(24), .burst = 10};

// Opens another one before it is done, until the limit says no.
class NestingOpener final : public upstream::Opener {
 public:
  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request /*request*/) override {
    ++opened;
    if (auto nested = co_await outer->open(to_api()); !nested) refused = nested.error().reason;
    co_return std::make_unique<FakeExchange>(script);
  }

  upstream::Opener* outer = nullptr;
  UpstreamScript script;
  int opened = 0;
  Reason refused = Reason::None;
};

TEST(LimitedOpener, OpensAsManyAtOnceAsTheLimitSays) {
  policy::Limits limits;
  limits.pending_connects = 3;
  Usage usage(limits);
  Usage of_another_session(limits);
  NestingOpener inner;
  LimitedOpener opener(inner, usage);
  inner.outer = &opener;
  EXPECT_TRUE(run_alone(opener.open(to_api())));
  EXPECT_EQ(inner.opened, 3);
  EXPECT_EQ(inner.refused, Reason::Overloaded);
  EXPECT_EQ(usage.connects.taken(), 0U);
  EXPECT_EQ(of_another_session.connects.taken(), 0U);
  EXPECT_TRUE(run_alone(opener.open(to_api()))) << "there is room again";
}

// One session and its upstream.
struct Session {
  explicit Session(const policy::Limits& limits) : usage(limits) {}

  std::unique_ptr<upstream::Exchange> open() {
    auto exchange = run_alone(opener.open(to_api()));
    EXPECT_TRUE(exchange) << exchange.error().detail;
    return exchange ? *std::move(exchange) : nullptr;
  }
  Reason refusal() {
    const auto exchange = run_alone(opener.open(to_api()));
    return exchange ? Reason::None : exchange.error().reason;
  }

  UpstreamScript script;
  FakeOpener inner{script};
  Usage usage;
  LimitedOpener opener{inner, usage};
};

TEST(LimitedOpener, CutsOffWhatSpendsTheBudgetForUpload) {
  Session session(limits_of(kTenBytesADay, std::nullopt));
  Session other(limits_of(kTenBytesADay, std::nullopt));
  auto exchange = session.open();
  EXPECT_TRUE(run_alone(exchange->send_body("0123456789")));
  const auto sent = run_alone(exchange->send_body("x"));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().reason, Reason::TooMany);
  EXPECT_EQ(session.script.sent, "0123456789");
  const auto head = run_alone(exchange->read_head());
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().reason, Reason::TooMany);
  EXPECT_EQ(session.refusal(), Reason::TooMany);
  EXPECT_GT(session.opener.time_to_retry(), std::chrono::hours(1));
  EXPECT_EQ(other.opener.time_to_retry().count(), 0);
  EXPECT_EQ(session.script.opened.size(), 1U) << "nothing is opened any more";
  EXPECT_EQ(other.refusal(), Reason::None);
}

TEST(LimitedOpener, CutsOffWhatSpendsTheBudgetForDownload) {
  Session session(limits_of(std::nullopt, kTenBytesADay));
  session.script.answers = UpstreamScript::When::AtOnce;
  session.script.body = {"0123456789", "x"};
  auto exchange = session.open();
  EXPECT_TRUE(run_alone(exchange->read_head()));
  std::array<char, 64> buffer{};
  const auto first = run_alone(exchange->read_body(buffer));
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, 10U);
  const auto second = run_alone(exchange->read_body(buffer));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, Reason::TooMany);
  EXPECT_EQ(session.refusal(), Reason::TooMany);
  EXPECT_GT(session.opener.time_to_retry(), std::chrono::hours(1));
}

TEST(LimitedOpener, CountsWhatASwitchedConnectionMoves) {
  Session session(limits_of(kTenBytesADay, kTenBytesADay));
  session.script.answers = UpstreamScript::When::AtOnce;
  session.script.head.status = 101;
  session.script.switched.stream =
      std::make_unique<FakeStream>(std::vector<std::string>{"01234567", "89x"}, FakeStream::End::Eof);
  auto exchange = session.open();
  EXPECT_TRUE(run_alone(exchange->read_head()));
  auto switched = exchange->take_stream();
  ASSERT_TRUE(switched);
  net::Stream& stream = *switched->stream;
  EXPECT_TRUE(run_alone(stream.write_all("0123456789")));
  EXPECT_FALSE(run_alone(stream.write_all("x")));
  std::array<char, 64> buffer{};
  EXPECT_TRUE(run_alone(stream.read_some(buffer)));
  const auto spent = run_alone(stream.read_some(buffer));
  ASSERT_FALSE(spent);
  EXPECT_EQ(spent.error().reason, Reason::TooMany);
}

}  // namespace
}  // namespace sallyport::forward
