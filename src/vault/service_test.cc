// Gate and vault together, as they are meant to be: the client, the lanes and the service, with a scripted
// upstream.

#include "vault/service.h"

#include "vault/base64_test.h"
#include "vault/service_fixture.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;
using testing::Not;
using upstream::BodyKind;

struct Outcome {
  Result<upstream::AnswerHead> head = fail(Reason::None, "not read");
  std::string body;
  Status end;  // of the answer's body
};

class GatedServiceTest : public ServiceTest {
 protected:
  GatedServiceTest() : client_(Client::make(worker_, "s1")) { client_->use_channel(std::move(gate_)); }

  static net::Task<> read_answer(upstream::Exchange& exchange, Outcome& outcome) {
    outcome.head = co_await exchange.read_head();
    if (!outcome.head) co_return;
    for (;;) {
      std::array<char, 1000> piece{};
      auto got = co_await exchange.read_body(piece);
      if (!got) outcome.end = std::unexpected(got.error());
      if (!got || *got == 0) co_return;
      outcome.body.append(piece.data(), *got);
    }
  }

  // One whole request, body first.
  net::Task<> exchange(upstream::Request request, std::string body, Outcome& outcome) {
    auto opened = co_await client_->open(std::move(request));
    if (!opened) {
      outcome.head = std::unexpected(opened.error());
      co_return;
    }
    // A failure here is told by the answer.
    (void)co_await (*opened)->send_body(body);
    (void)co_await (*opened)->end_body();
    co_await read_answer(**opened, outcome);
  }

  std::unique_ptr<Client> client_;
};

TEST_F(GatedServiceTest, CarriesARequestWithTheCredentialAndItsAnswerBack) {
  upstream_.pieces = {"one ", "two"};
  Outcome outcome;
  run(exchange(request(BodyKind::Declared, 4), "body", outcome));

  ASSERT_TRUE(outcome.head) << outcome.head.error().detail;
  EXPECT_EQ(outcome.head->status, 200);
  EXPECT_EQ(outcome.head->header("content-type"), "text/plain");
  EXPECT_EQ(outcome.body, "one two");
  EXPECT_TRUE(outcome.end);

  ASSERT_EQ(upstream_.requests.size(), 1U);
  const upstream::Request& sent = upstream_.requests[0];
  EXPECT_EQ(sent.target, "/acme/widget/git-receive-pack");
  EXPECT_EQ(sent.body, BodyKind::Declared);
  EXPECT_EQ(sent.body_bytes, 4U);
  ASSERT_EQ(sent.headers.size(), 1U);
  EXPECT_EQ(upstream_.body, "body");
  EXPECT_EQ(upstream_.bodies_ended, 1);
  const std::string user(policy::basic_user(policy::HostKind::Generic));
  EXPECT_EQ(upstream_.authorizations[0], "Authorization: Basic " + base64(user + ":" + std::string(kToken)));
}

TEST_F(GatedServiceTest, WritesDownEachUseOfACredentialBeforeItHappens) {
  Outcome outcome;
  run(exchange(request(BodyKind::Open), "", outcome));
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].kind, audit::Kind::Credential);
  EXPECT_EQ(events_[0].reason, Reason::None);
  EXPECT_EQ(events_[0].credential, "forge");
  EXPECT_EQ(events_[0].request, "r1");
  EXPECT_EQ(events_[0].host, "forge.test");
  EXPECT_EQ(events_[0].path, "/acme/widget/git-receive-pack");
  EXPECT_EQ(events_[0].rule, "sallyport.toml:7");
}

TEST_F(GatedServiceTest, SendsNothingWhenTheUseCannotBeWrittenDown) {
  accepts_events_ = false;
  Outcome outcome;
  run(exchange(request(BodyKind::Open), "body", outcome));
  ASSERT_FALSE(outcome.head);
  EXPECT_EQ(outcome.head.error().reason, Reason::AuditUnavailable);
  EXPECT_TRUE(upstream_.requests.empty());
}

TEST_F(GatedServiceTest, GivesACredentialNoMoreOftenThanItMay) {
  start({}, 1);
  client_->use_channel(std::move(gate_));
  Outcome first;
  Outcome second;
  const auto both = [](net::Task<> one, net::Task<> other) -> net::Task<> {
    co_await std::move(one);
    co_await std::move(other);
  };
  run(both(exchange(request(BodyKind::Open), "", first), exchange(request(BodyKind::Open), "", second)));
  EXPECT_TRUE(first.head);
  ASSERT_FALSE(second.head);
  EXPECT_EQ(second.head.error().reason, Reason::UsesSpent);
  EXPECT_EQ(upstream_.requests.size(), 1U);
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[1].reason, Reason::UsesSpent);
}

TEST_F(GatedServiceTest, StreamsALargeBodyWhole) {
  std::string body;
  for (int i = 0; i < 300'000; ++i) body += static_cast<char>(i * 7);
  Outcome outcome;
  run(exchange(request(BodyKind::Open), body, outcome));
  ASSERT_TRUE(outcome.head);
  EXPECT_EQ(upstream_.body, body);
}

TEST_F(GatedServiceTest, GivesAnAnswerThatComesBeforeTheBodyEnds) {
  upstream_.answers = Answers::AtOnce;
  Outcome outcome;
  const auto answer_first = [&]() -> net::Task<> {
    auto opened = co_await client_->open(request(BodyKind::Open));
    co_await read_answer(**opened, outcome);
    EXPECT_TRUE(co_await (*opened)->send_body("late"));
    EXPECT_TRUE(co_await (*opened)->end_body());
    opened->reset();
    // The lane was given back: its next request works.
    co_await exchange(request(BodyKind::Open), "next", outcome);
  };
  run(answer_first());
  EXPECT_EQ(outcome.body, "answeranswer");
  EXPECT_EQ(upstream_.body, "latenext");
}

TEST_F(GatedServiceTest, GivesTheAnswerOfAnUpstreamThatTakesNoBody) {
  upstream_.answers = Answers::AtOnce;
  upstream_.takes_body = false;
  upstream_.head.status = 413;
  Outcome outcome;
  run(exchange(request(BodyKind::Open), std::string(500'000, 'x'), outcome));
  ASSERT_TRUE(outcome.head) << outcome.head.error().detail;
  EXPECT_EQ(outcome.head->status, 413);
  EXPECT_EQ(upstream_.body, "");
}

TEST_F(GatedServiceTest, LeavesARefusedCredentialToTheGateAsAStatus) {
  upstream_.head = {.status = 401, .headers = {{"www-authenticate", "Basic realm=x"}}, .body_bytes = 0};
  upstream_.pieces.clear();
  Outcome outcome;
  run(exchange(request(BodyKind::Open), "", outcome));
  ASSERT_TRUE(outcome.head);
  EXPECT_EQ(outcome.head->status, 401);
  EXPECT_TRUE(outcome.head->headers.empty());
}

TEST_F(GatedServiceTest, TellsWhyAnUpstreamCannotBeReached) {
  upstream_.open_error = Error{Reason::UpstreamTls, "the certificate has expired"};
  Outcome outcome;
  run(exchange(request(BodyKind::Open), std::string(500'000, 'x'), outcome));
  ASSERT_FALSE(outcome.head);
  EXPECT_EQ(outcome.head.error().reason, Reason::UpstreamTls);
  EXPECT_EQ(outcome.head.error().detail, "the certificate has expired");
  EXPECT_EQ(events_.size(), 1U);  // no alarm: the gate did nothing wrong
}

TEST_F(GatedServiceTest, TellsACutAnswerFromAWholeOne) {
  upstream_.body_error = Error{Reason::UpstreamTruncated, "cut"};
  Outcome outcome;
  run(exchange(request(BodyKind::Open), "", outcome));
  ASSERT_TRUE(outcome.head);
  EXPECT_EQ(outcome.body, "answer");
  ASSERT_FALSE(outcome.end);
  EXPECT_EQ(outcome.end.error().reason, Reason::UpstreamTruncated);
}

TEST_F(GatedServiceTest, RefusesWithoutALoadedCredentialAndAfterItWasDropped) {
  Outcome missing;
  Outcome dropped;
  const auto both = [&]() -> net::Task<> {
    co_await exchange(request(BodyKind::None, 0, "/acme/locked/info/refs?service=git-upload-pack", 1), "",
                      missing);
    service_->drop_credential("forge");
    co_await exchange(request(BodyKind::Open), "", dropped);
  };
  run(both());
  ASSERT_FALSE(missing.head);
  EXPECT_EQ(missing.head.error().reason, Reason::CredentialUnavailable);
  ASSERT_FALSE(dropped.head);
  EXPECT_EQ(dropped.head.error().reason, Reason::CredentialUnavailable);
  EXPECT_TRUE(upstream_.requests.empty());
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].reason, Reason::CredentialUnavailable);
}

TEST_F(GatedServiceTest, UsesAReplacedCredentialFromTheNextRequestOn) {
  Outcome outcome;
  const auto both = [&]() -> net::Task<> {
    co_await exchange(request(BodyKind::Open), "", outcome);
    service_->set_credential("forge", secret("second"));
    co_await exchange(request(BodyKind::Open), "", outcome);
  };
  run(both());
  ASSERT_EQ(upstream_.authorizations.size(), 2U);
  EXPECT_THAT(
      upstream_.authorizations[1],
      testing::EndsWith(base64(std::string(policy::basic_user(policy::HostKind::Generic)) + ":second")));
}

TEST_F(GatedServiceTest, AbortsTheUpstreamWhenTheGateGivesUp) {
  upstream_.answers = Answers::Never;
  const auto give_up = [&]() -> net::Task<> {
    auto opened = co_await client_->open(request(BodyKind::Open));
    EXPECT_TRUE(co_await (*opened)->end_body());
    while (upstream_.bodies_ended == 0) co_await worker_.sleep(net::Clock::duration::zero());
    opened->reset();
    while (upstream_.aborted == 0) co_await worker_.sleep(net::Clock::duration::zero());
  };
  run(give_up());
  EXPECT_EQ(upstream_.aborted, 1);
}

TEST_F(GatedServiceTest, ServesManyLanesAtOnceAndRefusesOneTooMany) {
  const auto fill = [&]() -> net::Task<> {
    std::vector<std::unique_ptr<upstream::Exchange>> open;
    for (std::size_t i = 0; i < kMaxLanes; ++i) {
      auto opened = co_await client_->open(request(BodyKind::Open));
      EXPECT_TRUE(opened) << i;
      if (!opened) co_return;
      open.push_back(std::move(*opened));
    }
    const auto too_many = co_await client_->open(request(BodyKind::Open));
    EXPECT_EQ(too_many.error().reason, Reason::Overloaded);
    for (const auto& each : open) {
      Outcome outcome;
      EXPECT_TRUE(co_await each->end_body());
      co_await read_answer(*each, outcome);
      EXPECT_EQ(outcome.body, "answer");
    }
  };
  run(fill());
  EXPECT_EQ(upstream_.requests.size(), kMaxLanes);
}

TEST_F(GatedServiceTest, ShowsTheCredentialToTheUpstreamAlone) {
  upstream_.open_error = Error{Reason::UpstreamUnreachable, "refused"};
  Outcome outcome;
  const auto both = [&]() -> net::Task<> { co_await exchange(request(BodyKind::Open), "body", outcome); };
  run(both());
  EXPECT_THAT(upstream_.authorizations[0], Not(HasSubstr(kToken)));  // it is base64 there
  for (const audit::Event& event : events_) {
    EXPECT_THAT(event.detail + event.path + event.credential, Not(HasSubstr(kToken)));
  }
  EXPECT_THAT(outcome.head.error().detail, Not(HasSubstr(kToken)));
}

}  // namespace
}  // namespace sallyport::vault
