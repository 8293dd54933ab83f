#include <gtest/gtest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>

#include "net/dial.h"
#include "net/test_support.h"

namespace sallyport::net {
namespace {

constexpr char kTypeA = 1;

// A name server of one file on loopback. What it does not know gets NXDOMAIN; "silent.test" gets no answer.
class NameServer {
 public:
  explicit NameServer(Worker& worker) : socket_(worker.io()) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT_GE(fd, 0);
    if (fd < 0) return;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size), 0);
    servers = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
    socket_.assign(fd);
    worker.spawn("name server", serve());
  }

  std::string servers;
  std::map<std::string, std::vector<std::string>> records;  // of either family
  std::vector<std::string> asked;

 private:
  Task<> serve() {
    for (;;) {
      co_await socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                  boost::asio::use_awaitable);
      std::array<char, 512> buffer{};
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const auto got = ::recvfrom(socket_.native_handle(), buffer.data(), buffer.size(), 0,
                                  reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 17) continue;
      const std::string reply = answer({buffer.data(), static_cast<std::size_t>(got)});
      if (reply.empty()) continue;
      ::sendto(socket_.native_handle(), reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&from),
               size);
    }
  }

  std::string answer(std::string_view query) {
    std::string name;
    std::size_t at = 12;
    while (query[at] != 0) {
      const auto length = static_cast<std::size_t>(query[at]);
      if (!name.empty()) name += '.';
      name += query.substr(at + 1, length);
      at += length + 1;
    }
    const char type = query[at + 2];
    asked.push_back(name);
    if (name == "silent.test") return {};
    const auto found = records.find(name);
    std::string answers;
    char count = 0;
    for (const std::string& text : found == records.end() ? std::vector<std::string>() : found->second) {
      const auto address = policy::IpAddress::parse(text).value();
      const bool v4 = address.family == policy::Family::V4;
      if (v4 != (type == kTypeA)) continue;
      const std::size_t bytes = v4 ? 4 : 16;
      answers += std::string("\xc0\x0c\0", 3) + type + std::string("\0\x01\0\0\0\x3c\0", 7) +
                 static_cast<char>(bytes);
      answers.append(reinterpret_cast<const char*>(address.bytes.data()), bytes);
      ++count;
    }
    const char code = found == records.end() ? '\x83' : '\x80';
    std::string reply(query.substr(0, 2));
    reply += std::string("\x81", 1) + code + std::string("\0\x01\0", 3) + count + std::string("\0\0\0\0", 4);
    return reply + std::string(query.substr(12, at + 5 - 12)) + answers;
  }

  boost::asio::posix::stream_descriptor socket_;
};

class Resolve : public ::testing::Test {
 protected:
  auto resolve(const char* name) { return test::run(worker, resolver->resolve(test::host(name))); }

  Worker worker;
  NameServer server{worker};
  std::unique_ptr<Resolver> resolver =
      Resolver::make(worker, server.servers, std::chrono::seconds(1)).value();
};

TEST_F(Resolve, AsksForBothFamilies) {
  server.records["both.test"] = {"2001:db8::1", "192.0.2.1", "192.0.2.2"};
  const auto got = resolve("both.test");
  ASSERT_TRUE(got) << got.error().detail;
  std::vector<std::string> texts;
  for (const auto& address : *got) texts.push_back(address.str());
  EXPECT_EQ(texts, (std::vector<std::string>{"192.0.2.1", "192.0.2.2", "2001:db8::1"}));
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

TEST_F(Resolve, KeepsNoMoreThanItsLimit) {
  for (int i = 1; i <= 20; ++i) server.records["many.test"].push_back("192.0.2." + std::to_string(i));
  const auto got = resolve("many.test");
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->size(), kMaxResolvedAddresses);
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
