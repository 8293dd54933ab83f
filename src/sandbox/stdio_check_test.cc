#include "sandbox/stdio_check.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;

std::string why(const Fd& fd) {
  return why_way_out(fd.get()).value_or("");
}

TEST(StdioCheck, TakesFilesPipesAndTheEndsOfPairs) {
  EXPECT_EQ(why(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC))), "");
  EXPECT_EQ(why(Fd(::open("/etc/passwd", O_RDONLY | O_CLOEXEC))), "");
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(why(Fd(ends[0])), "");
  EXPECT_EQ(why(Fd(ends[1])), "");
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    ASSERT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
    EXPECT_EQ(why(Fd(ends[0])), "");
    ::close(ends[1]);
  }
}

TEST(StdioCheck, RefusesFolders) {
  EXPECT_THAT(why(Fd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC))), HasSubstr("is a folder"));
  EXPECT_THAT(why(Fd(::open("/", O_PATH | O_CLOEXEC))), HasSubstr("is a folder"));
  EXPECT_THAT(why(Fd()), HasSubstr("not open"));
}

TEST(StdioCheck, RefusesSocketsThatLeadElsewhere) {
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK}) {
    EXPECT_THAT(why(Fd(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0))), HasSubstr("is a socket")) << family;
  }
  EXPECT_THAT(why(Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))), HasSubstr("is a socket"));
  EXPECT_THAT(why(Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))), HasSubstr("is a socket"));
  // A pair of datagrams: each can be sent to another address all the same.
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_THAT(why(Fd(ends[0])), HasSubstr("is a socket"));
  ::close(ends[1]);
}

TEST(StdioCheck, TakesTheJournalsSocket) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can put a socket there";
  // In a child with mounts of its own.
  const std::string said = in_child([]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", "/run", "tmpfs", 0, nullptr) != 0) {
      return "no mount";
    }
    ::mkdir("/run/systemd", 0755);
    ::mkdir("/run/systemd/journal", 0755);
    const std::string path = "/run/systemd/journal/stdout";
    const Fd journal = listen_at(path);
    const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return "no way";
    return why(client);
  });
  EXPECT_EQ(said, "");
}

TEST(StdioCheck, RefusesAConnectionToANamedSocket) {
  TestFolder folder;
  const std::string path = folder.path() + "/s";
  const Fd listener = listen_at(path);
  const Fd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(why(client), HasSubstr("named one"));
  EXPECT_THAT(why(listener), HasSubstr("is a socket"));
}

}  // namespace
}  // namespace sallyport::sandbox
