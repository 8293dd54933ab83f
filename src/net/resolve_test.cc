#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "net/dial.h"
#include "net/name_server_fixture.h"
#include "net/test_support.h"

namespace sallyport::net {
namespace {

using test::DnsReply;
using test::NameServer;
using Replies = std::vector<DnsReply>;

class Resolve : public ::testing::Test {
 protected:
  auto resolve(const char* name) { return test::run(worker, resolver->resolve(test::host(name))); }

  // The addresses in order, or why there are none.
  std::vector<std::string> texts(const char* name) {
    const auto got = resolve(name);
    if (!got) return {std::string(info(got.error().reason).code), got.error().detail};
    std::vector<std::string> found;
    for (const auto& address : *got) found.push_back(address.str());
    std::ranges::sort(found);
    return found;
  }

  static Replies unless_silent(const DnsReply& good) {
    return good.name == "silent.test" ? Replies{} : Replies{good};
  }

  Worker worker;
  NameServer server{worker};
  std::unique_ptr<Resolver> resolver =
      Resolver::make(worker, {server.address}, std::chrono::seconds(1)).value();

  void SetUp() override { server.say = unless_silent; }
};

TEST_F(Resolve, AsksForBothFamilies) {
  server.records["both.test"] = {"2001:db8::1", "192.0.2.1", "192.0.2.2"};
  EXPECT_EQ(texts("both.test"), (std::vector<std::string>{"192.0.2.1", "192.0.2.2", "2001:db8::1"}));
}

TEST_F(Resolve, AsksForThatNameAndNoOther) {
  const auto got = resolve("nobody.test");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::UpstreamUnresolved);
  EXPECT_EQ(server.asked.size(), 2U);
  for (const auto& name : server.asked) EXPECT_EQ(name, "nobody.test");
}

TEST_F(Resolve, ANameWithoutAddressIsUnresolved) {
  server.records["empty.test"] = {};
  const auto got = resolve("empty.test");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::UpstreamUnresolved);
}

TEST_F(Resolve, ATruncatedAnswerIsFetchedOverTcpAndMayHaveAsManyAddressesAsItsLimit) {
  server.say = [](DnsReply reply) {
    reply.truncated = !reply.over_tcp;
    if (reply.truncated) reply.answers.clear();
    return Replies{reply};
  };
  for (std::size_t i = 0; i < kMaxResolvedAddresses; ++i) {
    server.records["many.test"].push_back("192.0.2." + std::to_string(i));
  }
  const auto got = resolve("many.test");
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->size(), kMaxResolvedAddresses);
  EXPECT_EQ(server.tcp_questions, 2);
  // One more could be the one that may not be dialled.
  server.records["many.test"].emplace_back("2001:db8::1");
  EXPECT_EQ(texts("many.test"),
            (std::vector<std::string>{"upstream_unresolved", "many.test: too many addresses"}));
}

TEST_F(Resolve, AnAnswerThatDoesNotFitTheQuestionIsIgnored) {
  server.records["both.test"] = {"192.0.2.1"};
  const std::pair<const char*, std::function<void(DnsReply&)>> forgeries[] = {
      {"another id", [](DnsReply& reply) { reply.id[0] = static_cast<char>(reply.id[0] ^ 1); }},
      {"another name", [](DnsReply& reply) { reply.name = "other.test"; }},
      {"another type", [](DnsReply& reply) { reply.type = 16; }},
      {"another port", [](DnsReply& reply) { reply.from_elsewhere = true; }},
  };
  for (const auto& [what, forge] : forgeries) {
    server.say = [&](const DnsReply& good) {
      DnsReply forged = good;
      for (auto& record : forged.answers) record.value = "192.0.2.66";
      forge(forged);
      return Replies{forged, good};
    };
    EXPECT_EQ(texts("both.test"), std::vector<std::string>{"192.0.2.1"}) << what;
  }
}

TEST_F(Resolve, IdsAndPortsCannotBeForetold) {
  server.records["both.test"] = {"192.0.2.1"};
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(resolve("both.test"));
  int successors = 0;
  for (std::size_t i = 1; i < server.ids.size(); ++i) {
    const auto number = [&](std::size_t at) {
      return (static_cast<unsigned char>(server.ids[at][0]) << 8) +
             static_cast<unsigned char>(server.ids[at][1]);
    };
    if (number(i) == number(i - 1) + 1) ++successors;
  }
  EXPECT_LT(successors, 4);
  // A socket for each time that there is something to ask.
  EXPECT_GT(std::set(server.ports.begin(), server.ports.end()).size(), 8U);
}

TEST_F(Resolve, OnlyTheChainFromTheQuestionCounts) {
  const struct {
    const char* what;
    std::map<std::string, std::vector<std::string>> records;
    std::vector<test::DnsRecord> instead;  // of the records
    std::vector<std::string> expected;
  } cases[] = {
      {"an alias",
       {{"a.test", {"b.test"}}, {"b.test", {"192.0.2.1", "2001:db8::1"}}},
       {},
       {"192.0.2.1", "2001:db8::1"}},
      {"an address of another name", {}, {{"a.test", "192.0.2.1"}, {"b.test", "192.0.2.66"}}, {"192.0.2.1"}},
      {"nothing but that",
       {},
       {{"b.test", "192.0.2.66"}},
       {"upstream_unresolved", "a.test: DNS server returned answer with no data"}},
      {"an alias of another name",
       {},
       {{"b.test", "c.test"}, {"c.test", "192.0.2.66"}},
       {"upstream_unresolved", "a.test: the answer has an alias of another name"}},
      {"an alias beside the chain",
       {},
       {{"a.test", "b.test"}, {"x.test", "y.test"}, {"y.test", "192.0.2.66"}},
       {"upstream_unresolved", "a.test: the answer has an alias of another name"}},
      {"an alias of itself",
       {{"a.test", {"a.test", "192.0.2.66"}}},
       {},
       {"upstream_unresolved", "a.test: its aliases lead in a circle"}},
      {"a circle of two",
       {{"a.test", {"b.test", "192.0.2.66"}}, {"b.test", {"a.test", "192.0.2.66"}}},
       {},
       {"upstream_unresolved", "a.test: its aliases lead in a circle"}},
      {"a circle of nothing",
       {{"a.test", {"b.test"}}, {"b.test", {"a.test"}}},
       {},
       {"upstream_unresolved", "a.test: DNS server returned answer with no data"}},
      {"a circle behind the question",
       {{"a.test", {"b.test"}}, {"b.test", {"c.test"}}, {"c.test", {"b.test", "192.0.2.66"}}},
       {},
       {"upstream_unresolved", "a.test: its aliases lead in a circle"}},
      {"an alias of nothing",
       {{"a.test", {"b.test"}}},
       {},
       {"upstream_unresolved", "a.test: DNS server returned answer with no data"}},
  };
  for (const auto& c : cases) {
    server.records = c.records;
    server.records["a.test"];
    server.say = [&](DnsReply reply) {
      if (!c.instead.empty()) reply.answers = c.instead;
      std::erase_if(reply.answers, [&](const test::DnsRecord& record) {
        return record.type() != reply.type && record.type() != test::kTypeCname;
      });
      return Replies{reply};
    };
    EXPECT_EQ(texts("a.test"), c.expected) << c.what;
  }
}

TEST_F(Resolve, AChainHasNoMoreAliasesThanItsLimit) {
  for (std::size_t aliases = kMaxCnames; aliases <= kMaxCnames + 1; ++aliases) {
    server.records.clear();
    for (std::size_t i = 0; i < aliases; ++i) {
      server.records["n" + std::to_string(i) + ".test"] = {"n" + std::to_string(i + 1) + ".test"};
    }
    server.records["n" + std::to_string(aliases) + ".test"] = {"192.0.2.1"};
    EXPECT_EQ(texts("n0.test"),
              aliases == kMaxCnames
                  ? std::vector<std::string>{"192.0.2.1"}
                  : (std::vector<std::string>{"upstream_unresolved", "n0.test: too many aliases"}));
  }
}

TEST_F(Resolve, AServerThatFailsIsAFailure) {
  server.records["both.test"] = {"192.0.2.1"};
  for (const auto code : {DnsReply::Code::ServFail, DnsReply::Code::Refused}) {
    server.say = [&](DnsReply reply) {
      reply.code = code;
      reply.answers.clear();
      return Replies{reply};
    };
    const auto got = resolve("both.test");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().reason, Reason::UpstreamUnresolved);
  }
}

class ResolveByTwo : public Resolve {
 protected:
  ResolveByTwo() {
    second.records["both.test"] = {"192.0.2.2"};
    server.records["both.test"] = {"192.0.2.1"};
    resolver = Resolver::make(worker, {server.address, second.address}).value();
  }

  NameServer second{worker};
};

TEST_F(ResolveByTwo, TheFirstIsAskedFirst) {
  EXPECT_EQ(texts("both.test"), std::vector<std::string>{"192.0.2.1"});
  EXPECT_TRUE(second.asked.empty());
}

TEST_F(ResolveByTwo, TheSecondAnswersForASilentFirst) {
  server.say = [](const DnsReply&) { return Replies{}; };
  EXPECT_EQ(texts("both.test"), std::vector<std::string>{"192.0.2.2"});
}

TEST_F(ResolveByTwo, TheSecondAnswersForAFirstThatFails) {
  server.say = [](DnsReply reply) {
    reply.code = DnsReply::Code::ServFail;
    reply.answers.clear();
    return Replies{reply};
  };
  EXPECT_EQ(texts("both.test"), std::vector<std::string>{"192.0.2.2"});
}

TEST_F(ResolveByTwo, TheSecondAnswersForAFirstThatIsGone) {
  // Nothing listens there, with the same port as the second: at another address of loopback.
  const auto gone = policy::PinnedAddress{policy::IpAddress::parse("127.0.0.2").value(), second.address.port};
  resolver = Resolver::make(worker, {gone, second.address}).value();
  EXPECT_EQ(texts("both.test"), std::vector<std::string>{"192.0.2.2"});
}

TEST_F(ResolveByTwo, TheLastAnswersForAsManySilentOnesAsThereMayBe) {
  std::vector<std::unique_ptr<NameServer>> silent;
  std::vector<policy::PinnedAddress> servers;
  while (silent.size() < policy::kMaxResolvers - 1) {
    silent.push_back(std::make_unique<NameServer>(worker));
    silent.back()->say = [](const DnsReply&) { return Replies{}; };
    servers.push_back(silent.back()->address);
  }
  servers.push_back(second.address);
  resolver = Resolver::make(worker, servers).value();
  EXPECT_EQ(texts("both.test"), std::vector<std::string>{"192.0.2.2"});
  // Each was asked for both families.
  for (const auto& server : silent) EXPECT_EQ(server->asked.size(), 2U);
}

TEST_F(ResolveByTwo, ANameThatTheFirstDoesNotKnowIsNotAskedOfTheSecond) {
  server.records.clear();
  EXPECT_EQ(texts("both.test").front(), "upstream_unresolved");
  EXPECT_TRUE(second.asked.empty());
}

TEST_F(Resolve, ASilentServerIsATimeout) {
  const auto got = resolve("silent.test");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::UpstreamTimeout);
  // The question that nobody waits for any more harms nobody.
  server.records["both.test"] = {"192.0.2.1"};
  EXPECT_TRUE(resolve("both.test"));
}

TEST_F(Resolve, AnswersManyAtOnce) {
  constexpr int kQuestions = 50;
  int answered = 0;
  for (int i = 0; i < kQuestions; ++i) {
    const std::string name = "n" + std::to_string(i) + ".test";
    server.records[name] = {"192.0.2." + std::to_string(i)};
    worker.spawn(name, [](Worker& w, Resolver& r, std::string host, int number, int& count) -> Task<> {
      const auto got = co_await r.resolve(test::host(host));
      EXPECT_TRUE(got && got->front().str() == "192.0.2." + std::to_string(number)) << host;
      if (++count == kQuestions) w.stop();
    }(worker, *resolver, name, i, answered));
  }
  worker.run();
  EXPECT_EQ(answered, kQuestions);
}

TEST_F(Resolve, AsksForNoMoreNamesAtOnceThanItsLimit) {
  const auto asks = [](Resolver& r) -> Task<> {
    const auto got = co_await r.resolve(test::host("silent.test"));
    EXPECT_EQ(got.error().reason, Reason::UpstreamTimeout);
  };
  for (std::size_t i = 0; i < kMaxQuestions; ++i) worker.spawn("asks", asks(*resolver));
  test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
  server.records["both.test"] = {"192.0.2.1"};
  const auto got = resolve("both.test");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().reason, Reason::Overloaded);
}

TEST_F(Resolve, HasRoomAgainWhenQuestionsAreAnswered) {
  server.records["both.test"] = {"192.0.2.1"};
  for (std::size_t i = 0; i < 2 * kMaxQuestions; ++i) ASSERT_TRUE(resolve("both.test")) << i;
}

TEST_F(Resolve, MayGoWhileQuestionsWait) {
  worker.spawn("asks",
               [](Resolver& r) -> Task<> { (void)co_await r.resolve(test::host("silent.test")); }(*resolver));
  test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
  resolver.reset();
  test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace sallyport::net
