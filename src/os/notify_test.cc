#include "os/notify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "base/random.h"
#include "os/local_test.h"

namespace sallyport::os {
namespace {

using std::chrono::milliseconds;
using ::testing::MatchesRegex;

// The manager's socket; '@' begins an abstract name.
Fd manager_at(const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address = unix_address(name);
  if (name[0] == '@') address.sun_path[0] = '\0';
  const std::size_t size = offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size)),
            0);
  return socket;
}

std::string heard(const Fd& manager) {
  char bytes[512];
  const ssize_t got = ::recv(manager.get(), bytes, sizeof bytes, 0);
  return got < 0 ? "nothing" : std::string(bytes, static_cast<std::size_t>(got));
}

void expect_all_messages(const std::string& name) {
  const Fd manager = manager_at(name);
  auto notifier = Notifier::open(name.c_str());
  ASSERT_TRUE(notifier) << notifier.error().detail;
  notifier->ready("serving 3 sessions");
  EXPECT_EQ(heard(manager), "READY=1\nSTATUS=serving 3 sessions");
  notifier->status("one\nMAINPID=1");
  EXPECT_EQ(heard(manager), "STATUS=one MAINPID=1");
  notifier->reloading();
  EXPECT_THAT(heard(manager), MatchesRegex("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  notifier->watchdog();
  EXPECT_EQ(heard(manager), "WATCHDOG=1");
  notifier->stopping();
  EXPECT_EQ(heard(manager), "STOPPING=1");
  EXPECT_EQ(heard(manager), "nothing");
}

TEST(Notifier, SpeaksToAPath) {
  const PrivateFolder room;
  expect_all_messages(room / "notify");
}

TEST(Notifier, SpeaksToAnAbstractName) {
  expect_all_messages("@sallyport-test/" + random_hex(8));
}

TEST(Notifier, SaysNothingWhenNobodyAsked) {
  for (const char* nobody : {static_cast<const char*>(nullptr), ""}) {
    auto notifier = Notifier::open(nobody);
    ASSERT_TRUE(notifier);
    notifier->ready("");
  }
}

TEST(NotifyListener, HearsTheServiceAloneAndOnlyThatItIsReady) {
  auto listener = NotifyListener::open();
  ASSERT_TRUE(listener) << listener.error().detail;
  EXPECT_EQ(listener->heard_ready(::getpid()), false);
  auto notifier = Notifier::open(listener->name().c_str());
  ASSERT_TRUE(notifier) << notifier.error().detail;
  notifier->status("READY=1 it is not");
  EXPECT_EQ(listener->heard_ready(::getpid()), false);
  notifier->ready("serving");
  EXPECT_EQ(listener->heard_ready(::getpid() + 1), false) << "another said so";
  notifier->ready("serving");
  notifier->status("and more");
  EXPECT_EQ(listener->heard_ready(::getpid()), true);
  EXPECT_EQ(listener->heard_ready(::getpid()), false) << "it is taken";
}

TEST(Notifier, DoesNotMindADeafManager) {
  const PrivateFolder room;
  Fd manager = manager_at(room / "notify");
  auto notifier = Notifier::open((room / "notify").c_str());
  ASSERT_TRUE(notifier);
  for (int i = 0; i < 100'000; ++i) notifier->watchdog();  // its queue is full long before
  manager.reset();
  notifier->stopping();
}

TEST(Notifier, RefusesANameThatIsNone) {
  for (const std::string& name :
       {std::string("relative"), std::string("/"), std::string("@"), "/" + std::string(200, 'x'),
        std::string("/nowhere/at/all"), std::string("vsock:2:1234")}) {
    EXPECT_FALSE(Notifier::open(name.c_str())) << name;
  }
}

TEST(WatchdogPeriod, IsHalfOfWhatTheManagerWaits) {
  EXPECT_EQ(watchdog_period("30000000", nullptr, 7), milliseconds(15'000));
  EXPECT_EQ(watchdog_period("30000000", "7", 7), milliseconds(15'000));
  EXPECT_EQ(watchdog_period("30000000", "8", 7), std::nullopt);
  EXPECT_EQ(watchdog_period("1", nullptr, 7), milliseconds(1));
  for (const char* text : {"0", "-1", "x", "", "99999999999999999999"})
    EXPECT_EQ(watchdog_period(text, nullptr, 7), std::nullopt);
  EXPECT_EQ(watchdog_period(nullptr, nullptr, 7), std::nullopt);
}

}  // namespace
}  // namespace sallyport::os
