#include "os/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include "os/local_test.h"

namespace sallyport::os {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "other users need root";
    path_ = room_ / "socket";
    listener_ = listen_at(path_);
    ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
    ASSERT_EQ(::chmod(room_.path().c_str(), 0711), 0);
  }

  // Linux 6.5; before it the uid alone has to do.
  static bool kernel_names_processes() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const Fd near(ends[0]);
    const Fd far(ends[1]);
    int pidfd = -1;
    socklen_t size = sizeof pidfd;
    constexpr int kPeerPidfd = 77;
    const bool known = ::getsockopt(near.get(), SOL_SOCKET, kPeerPidfd, &pidfd, &size) == 0;
    const Fd owned(pidfd);
    return known;
  }

  // Of a process that did `prepare`, connected, and still lives; or has ended, as `then` says.
  enum class Then { Live, End };
  Result<Peer> peer_after(const std::function<bool()>& prepare, Then then = Then::Live) {
    int release[2];
    EXPECT_EQ(::pipe(release), 0);
    const pid_t child = ::_Fork();  // unlike fork() it starts no thread of a sanitizer in the child
    if (child == 0) {
      ::close(release[1]);
      const bool prepared = prepare();
      const Fd connection = connect_plainly(path_);
      if (!prepared) ::_exit(1);
      char byte = 0;
      if (then == Then::Live) (void)!::read(release[0], &byte, 1);
      ::_exit(connection ? 0 : 2);
    }
    ::close(release[0]);
    const Fd accepted(::accept(listener_.get(), nullptr, nullptr));
    int status = 0;
    if (then == Then::End) ::waitpid(child, &status, 0);
    auto peer = accepted_peer(accepted.get());
    ::close(release[1]);
    if (then == Then::Live) ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    return peer;
  }

  PrivateFolder room_;
  std::string path_;
  Fd listener_;
};

TEST_F(PeerTest, IsKnownWithItsGroups) {
  const auto peer = peer_after([] {
    const gid_t groups[] = {7, 23456};
    return ::setgroups(2, groups) == 0 && ::setgid(12346) == 0 && ::setuid(kStranger) == 0;
  });
  ASSERT_TRUE(peer) << peer.error().detail;
  EXPECT_EQ(peer->uid, kStranger);
  EXPECT_EQ(peer->gid, 12346U);
  EXPECT_THAT(peer->groups, ElementsAre(7, 23456));
  EXPECT_GT(peer->pid, 0);
}

TEST_F(PeerTest, MayBeInManyGroups) {
  const auto peer = peer_after([] {
    std::vector<gid_t> groups(1000);
    for (gid_t i = 0; i < 1000; ++i) groups[i] = 100 + i;
    return ::setgroups(groups.size(), groups.data()) == 0;
  });
  ASSERT_TRUE(peer) << peer.error().detail;
  EXPECT_EQ(peer->groups.size(), 1000U);
}

TEST_F(PeerTest, IsRefusedWhenItsUidDoesNotMapHere) {
  const auto peer = peer_after([] { return ::setuid(kOverflowUid) == 0; });
  ASSERT_FALSE(peer);
  EXPECT_THAT(peer.error().detail, HasSubstr("does not map here"));
}

TEST_F(PeerTest, IsRefusedFromAnotherUserNamespace) {
  if (!kernel_names_processes()) GTEST_SKIP() << "this kernel has no SO_PEERPIDFD";
  const auto peer = peer_after([] { return ::unshare(CLONE_NEWUSER) == 0; });
  ASSERT_FALSE(peer);
  EXPECT_EQ(peer.error().reason, Reason::OtherUser);
  EXPECT_THAT(peer.error().detail, HasSubstr("in another user namespace"));
}

TEST_F(PeerTest, IsRefusedFromAnotherPidNamespace) {
  if (!kernel_names_processes()) GTEST_SKIP() << "this kernel has no SO_PEERPIDFD";
  const auto peer = peer_after([] {
    if (::unshare(CLONE_NEWPID) != 0) return false;
    const pid_t inner = ::_Fork();  // the first in it
    if (inner == 0) return true;
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WEXITSTATUS(status));
  });
  ASSERT_FALSE(peer);
  EXPECT_THAT(peer.error().detail, HasSubstr("in another pid namespace"));
}

TEST_F(PeerTest, IsRefusedWhenItsProcessIsGone) {
  if (!kernel_names_processes()) GTEST_SKIP() << "this kernel has no SO_PEERPIDFD";
  const auto peer = peer_after([] { return true; }, Then::End);
  ASSERT_FALSE(peer);
  EXPECT_THAT(peer.error().detail, HasSubstr("is gone"));
}

TEST(PeerProcess, IsKnownToEndAndToHaveEnded) {
  const PrivateFolder room;
  const std::string path = room / "socket";
  const Fd listener = listen_at(path);
  int release[2];
  ASSERT_EQ(::pipe(release), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(release[1]);
    const Fd connection = connect_plainly(path);
    char byte = 0;
    (void)!::read(release[0], &byte, 1);
    ::_exit(0);
  }
  ::close(release[0]);
  const Fd accepted(::accept(listener.get(), nullptr, nullptr));
  const auto process = open_peer_process(accepted.get());
  ASSERT_TRUE(process) << process.error().detail;
  pollfd entry{process->get(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0);
  ::close(release[1]);
  EXPECT_EQ(::poll(&entry, 1, -1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  const auto gone = open_peer_process(accepted.get());
  // Linux 6.16 knows it still.
  pollfd ended{gone ? gone->get() : -1, POLLIN, 0};
  EXPECT_TRUE(gone ? ::poll(&ended, 1, 0) == 1 : gone.error().reason == Reason::ClientClosed);
}

}  // namespace
}  // namespace sallyport::os
