// Leaks made one at a time: each must be caught by its own probe, in a real sandbox.

#include "sandbox/preflight.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "os/inside_test.h"
#include "os/links.h"
#include "os/netlink.h"
#include "sandbox/trial_test.h"

namespace sallyport::sandbox {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void expect_failed(const std::optional<Failed>& failed, Check check, const std::string& detail) {
  ASSERT_TRUE(failed.has_value()) << "the leak was not found";
  EXPECT_EQ(name(failed->check), name(check)) << failed->detail;
  EXPECT_THAT(failed->detail, HasSubstr(detail));
}

// Puts arguments in front of what remounts everything read-only.
void insert_arguments(BubblewrapCall& call, const std::vector<std::string>& arguments) {
  const auto place = std::ranges::find(call.argv, "--remount-ro");
  call.argv.insert(place, arguments.begin(), arguments.end());
}

void remove_arguments(BubblewrapCall& call, const std::string& first, int count) {
  const auto place = std::ranges::find(call.argv, first);
  ASSERT_NE(place, call.argv.end());
  call.argv.erase(place, place + count);
}

// The thread sanitizer runs a thread of its own, and a process with threads can neither make nor enter a user
// namespace.
#if __has_feature(thread_sanitizer)
constexpr bool kCanEnterUserNamespaces = false;
#else
constexpr bool kCanEnterUserNamespaces = true;
#endif

// What init would find as uid 1000, group 1000 and these groups of the host's.
std::string uid_map_with(const std::vector<gid_t>& groups, uid_t uid = 1000, gid_t gid = 1000) {
  os::testing::Forked child([=]() -> std::string {
    if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(gid, gid, gid) != 0 ||
        ::setresuid(uid, uid, uid) != 0) {
      return "cannot change";
    }
    const auto found = check_uid_map(Users::Hosts);
    return found ? found->detail : "";
  });
  return child.finish();
}

TEST(Preflight, FindsAGroupOfTheHostsInAContainer) {
  if (::geteuid() != 0) GTEST_SKIP() << "groups need root";
  EXPECT_EQ(uid_map_with({}), "");
  EXPECT_EQ(uid_map_with({1000}), "");
  EXPECT_EQ(uid_map_with({1000, 42}),
            "the image's /etc/group puts uid 1000 into group 42, which may be one of the host's");
  EXPECT_THAT(uid_map_with({0}), HasSubstr("into group 0"));
  EXPECT_EQ(uid_map_with({}, 0), "the sandbox runs as uid 0");
  EXPECT_EQ(uid_map_with({}, 1000, 0), "the sandbox runs as gid 0");
}

TEST(Preflight, PassesASealedSandbox) {
  Trial trial;
  EXPECT_EQ(trial.run_phase1().has_value(), false);
  EXPECT_EQ(trial.run_phase2().has_value(), false);
  EXPECT_EQ(trial.decoys().seen(), std::nullopt);
}

TEST(Preflight, FindsAnExtraInterface) {
  if (!kCanEnterUserNamespaces) GTEST_SKIP() << "a sanitizer's thread is in the way";
  Trial trial;
  const auto add_device = [&trial] {
    const bool inside = (::geteuid() != 0 || os::become(trial.ids())) &&
                        ::setns(trial.space().user.get(), CLONE_NEWUSER) == 0 &&
                        ::setns(trial.space().net.get(), CLONE_NEWNET) == 0;
    if (!inside) return std::string("cannot enter the namespaces");
    const auto socket = os::open_route_socket(0);
    alignas(nlmsghdr) char buffer[256] = {};
    nlmsghdr* message = ::mnl_nlmsg_put_header(buffer);
    message->nlmsg_type = RTM_NEWLINK;
    message->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL;
    ::mnl_nlmsg_put_extra_header(message, sizeof(ifinfomsg));
    ::mnl_attr_put_strz(message, IFLA_IFNAME, "leak0");
    nlattr* kind = ::mnl_attr_nest_start(message, IFLA_LINKINFO);
    ::mnl_attr_put_strz(message, IFLA_INFO_KIND, "veth");
    ::mnl_attr_nest_end(message, kind);
    const auto added = os::netlink_request(socket->get(), message, "add a device");
    if (!added) return added.error().detail;
    return std::string();
  };
  const std::string made = in_child(add_device);
  ASSERT_EQ(made, "");
  expect_failed(trial.run_phase1(), Check::Interfaces, "holds the device");
}

TEST(Preflight, FindsTheHostsNetworkNamespace) {
  Trial trial;
  trial.tamper = [](BubblewrapCall&, os::SpawnSpec& spawn) { spawn.net_namespace.reset(); };
  const auto failed = trial.run_phase1();
  ASSERT_TRUE(failed.has_value());
  // By its interfaces; a host that has none but lo, by what is in reach over that.
  EXPECT_TRUE(failed->check == Check::Interfaces || failed->check == Check::Unreachable)
      << name(failed->check);
}

TEST(Preflight, FindsAWayToAnAddress) {
  const auto decoys = Decoys::open();
  ASSERT_TRUE(decoys.has_value());
  expect_failed(check_unreachable({}, decoys->list()), Check::Unreachable, "there is a way to tcp");
  EXPECT_THAT(decoys->seen().value_or(""), StartsWith("tcp "));
}

TEST(Preflight, FindsAWayOverUdpAlone) {
  const auto decoys = Decoys::open();
  ASSERT_TRUE(decoys.has_value());
  DecoyList list = decoys->list();
  list.tcp.clear();
  EXPECT_TRUE(check_unreachable({}, list).has_value());
}

TEST(Preflight, FindsTheHostsAbstractSockets) {
  const auto decoys = Decoys::open();
  ASSERT_TRUE(decoys.has_value());
  expect_failed(check_abstract_socket(decoys->list().abstract_name), Check::AbstractSocket, "in reach");
  EXPECT_EQ(decoys->seen(), "the abstract Unix socket");
}

TEST(Preflight, FindsAMountedDockerSocket) {
  Trial trial;
  const std::string path = trial.folder() + "/docker.sock";
  const Fd engine = listen_at(path);
  trial.tamper = [&](BubblewrapCall& call, os::SpawnSpec&) {
    insert_arguments(call, {"--bind", path, "/run/docker.sock"});
  };
  expect_failed(trial.run_phase1(), Check::HostSockets, "docker.sock is in the sandbox");
}

TEST(Preflight, FindsASocketOfAnyNameInAPrivateFolder) {
  Trial trial;
  const std::string path = trial.folder() + "/s";
  const Fd socket = listen_at(path);
  trial.tamper = [&](BubblewrapCall& call, os::SpawnSpec&) {
    insert_arguments(call, {"--bind", path, "/home/tester/deep/down/x"});
  };
  expect_failed(trial.run_phase1(), Check::HostSockets, "/home/tester/deep/down/x is a socket of the host");
}

TEST(Preflight, FindsAnAgentNamedInTheEnvironment) {
  for (const char* variable : {"SSH_AUTH_SOCK=/x", "DBUS_SESSION_BUS_ADDRESS=unix:path=/x"}) {
    Trial trial;
    trial.workload.environment.emplace_back(variable);
    expect_failed(trial.run_phase1(), Check::HostSockets, "the environment names a socket");
  }
}

TEST(Preflight, FindsThatAfVsockIsOpen) {
  const Fd vsock(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!vsock) GTEST_SKIP() << "this kernel has no AF_VSOCK to leak";
  Trial trial;
  // A filter is in force, but it lets the family through.
  const Fd filter(::memfd_create("filter", MFD_CLOEXEC));
  scmp_filter_ctx context = ::seccomp_init(SCMP_ACT_ALLOW);
  ASSERT_EQ(::seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(reboot), 0), 0);
  ASSERT_EQ(::seccomp_export_bpf(context, filter.get()), 0);
  ::seccomp_release(context);
  ASSERT_EQ(::lseek(filter.get(), 0, SEEK_SET), 0);
  trial.tamper = [&](BubblewrapCall& call, os::SpawnSpec&) {
    const auto place = std::ranges::find(call.argv, "--seccomp");
    const int target = std::stoi(*(place + 1));
    std::ranges::find(call.descriptors, target, &os::DescriptorMap::target_fd)->source_fd = filter.get();
  };
  expect_failed(trial.run_phase1(), Check::SocketFamilies, "AF_VSOCK can be had");
}

TEST(Preflight, FindsThatThereIsNoFilter) {
  Trial trial;
  trial.tamper = [](BubblewrapCall& call, os::SpawnSpec&) { remove_arguments(call, "--seccomp", 2); };
  expect_failed(trial.run_phase1(), Check::Privileges, "no system call filter");
}

TEST(Preflight, FindsSystemCallsOutsideASandbox) {
  const auto failed = check_system_calls();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->check, Check::SystemCalls);
}

TEST(Preflight, FindsACapability) {
  Trial trial;
  trial.tamper = [](BubblewrapCall& call, os::SpawnSpec&) {
    remove_arguments(call, "--cap-drop", 2);
    insert_arguments(call, {"--cap-add", "CAP_NET_RAW"});
  };
  expect_failed(trial.run_phase1(), Check::Privileges, "there are capabilities");
}

TEST(Preflight, FindsThatTheHostsRootIsMapped) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can map the host's root";
  if (!kCanEnterUserNamespaces) GTEST_SKIP() << "a sanitizer's thread is in the way";
  const std::string found = in_child([] {
    if (::unshare(CLONE_NEWUSER) != 0) return std::string("cannot unshare");
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "1000 0 1";
    const auto failed = check_uid_map(Users::Own);
    if (!failed) return std::string("not found");
    return failed->detail == "the host's root is uid 1000 in the sandbox" ? std::string() : failed->detail;
  });
  EXPECT_EQ(found, "");
}

TEST(Preflight, FindsAWritableProcSys) {
  Trial trial;
  trial.tamper = [](BubblewrapCall& call, os::SpawnSpec&) {
    const auto place = std::ranges::find(call.argv, "/proc/sys");
    ASSERT_NE(place, call.argv.end());
    call.argv.erase(place - 1, place + 2);
  };
  expect_failed(trial.run_phase1(), Check::ProcSys, "/proc/sys is not mounted read-only");
}

TEST(Preflight, FindsACanaryInTheWorkloadsEnvironment) {
  Trial trial;
  trial.workload.environment.push_back("X=a" + trial.phase1.canary + "b");
  expect_failed(trial.run_phase1(), Check::Canary, "came along to the workload");
}

TEST(Preflight, FindsACanaryInTheRuntimesEnvironment) {
  Trial trial;
  trial.tamper = [&](BubblewrapCall&, os::SpawnSpec& spawn) {
    spawn.environment.push_back("SALLYPORT_CANARY=" + trial.phase1.canary);
  };
  expect_failed(trial.run_phase1(), Check::Canary, "/proc/1/environ");
}

TEST(Preflight, FindsACanaryInTheArguments) {
  Trial trial;
  trial.workload.argv.push_back(trial.phase1.canary);
  expect_failed(trial.run_phase1(), Check::Canary, "in the arguments");
}

TEST(Preflight, FindsAMountThatIsNotWhatWasChecked) {
  Trial trial;
  trial.phase1.mounts = expected_mounts(trial.mounts);
  ++trial.phase1.mounts.front().inode;
  expect_failed(trial.run_phase1(), Check::Mounts, "was replaced meanwhile");
}

TEST(Preflight, FindsAFolderAsStdin) {
  Trial trial;
  const Fd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  trial.spec.stdio[0] = folder.get();
  expect_failed(trial.run_phase1(), Check::Descriptors, "descriptor 0 is a folder outside");
}

TEST(Preflight, FindsADescriptorThatCameAlong) {
  const Fd extra(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  expect_failed(check_descriptors(-1), Check::Descriptors, "came along");
}

TEST(Preflight, FindsAnotherThanTheDoor) {
  Trial trial;
  ASSERT_EQ(trial.run_phase1().has_value(), false);
  expect_failed(trial.run_phase2("door-0000\n"), Check::Door, "not the door answers at 192.0.2.77:443");
}

TEST(Preflight, FindsThatNoDoorIsThere) {
  Trial trial;
  ASSERT_EQ(trial.run_phase1().has_value(), false);
  // The doors were never opened.
  trial.send(Phase2{.must_be_door = {*os::endpoint_from("192.0.2.77", 443)},
                    .decoys = trial.decoys().list(),
                    .probe_line = "p",
                    .door_line = "d"});
  expect_failed(std::get<Failed>(trial.receive()), Check::Door, "the door does not answer at 192.0.2.77:443");
}

}  // namespace
}  // namespace sallyport::sandbox
