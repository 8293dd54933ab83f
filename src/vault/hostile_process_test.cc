// A gate that is no longer ours in front of the real vault, behind its real walls: it gets the uses that the
// grant permits and nothing else, and cannot make the vault grow.

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "os/inside_test.h"
#include "vault/base64_test.h"
#include "vault/frames.h"
#include "vault/hostile_frames_test.h"
#include "vault/process_fixture.h"
#include "wire/chunked.h"

namespace sallyport::vault {
namespace {

using testing::HasSubstr;

// What a hostile gate may make the vault's resident memory grow by: kMaxLanes lanes with both buffers in use
// (128 KiB), and as much again for TLS. Sanitizers keep what was freed, and shadow every byte.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t kMaxGrowthKib = std::size_t{8} * 1024 * 1024;
#else
constexpr std::size_t kMaxGrowthKib = 64 * 1024;
#endif

// What came on one connection of the upstream.
struct Seen {
  std::string head;
  std::string body;  // without framing
  bool whole = false;
  int connection = 0;
};

// A TLS server that reads each request as its framing says, keeps it, and answers it.
class RecordingServer {
 public:
  explicit RecordingServer(net::Worker& worker) : tls(worker), never_(worker) {
    tls.serve = [this](net::Stream& stream, int connection) { return talk(stream, connection); };
  }

  net::test::TlsServer tls;
  std::vector<std::unique_ptr<Seen>> seen;
  bool reads_bodies = true;

 private:
  net::Task<> talk(net::Stream& stream, int connection) {
    for (;;) {
      auto request = std::make_unique<Seen>();
      request->connection = connection;
      char byte = 0;
      while (!request->head.ends_with("\r\n\r\n")) {
        const auto got = co_await stream.read_some({&byte, 1});
        if (!got || *got == 0) co_return;
        request->head += byte;
      }
      Seen& kept = *seen.emplace_back(std::move(request));
      if (!reads_bodies) co_await never_.wait();
      if (!co_await read_body(stream, kept)) co_return;
      kept.whole = true;
      if (!co_await stream.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) co_return;
    }
  }

  static net::Task<bool> read_body(net::Stream& stream, Seen& request) {
    const bool chunked = request.head.find("\r\nTransfer-Encoding: chunked\r\n") != std::string::npos;
    std::size_t left = 0;
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    if (const std::size_t at = request.head.find(kLength); at != std::string::npos) {
      left = std::stoul(request.head.substr(at + kLength.size()));
    }
    wire::ChunkedDecoder decoder(wire::ChunkedDecoder::Message::Request);
    char byte = 0;
    while (chunked ? !decoder.finished() : left > 0) {
      const auto got = co_await stream.read_some({&byte, 1});
      if (!got || *got == 0) co_return false;
      if (!chunked) {
        request.body += byte;
        --left;
        continue;
      }
      const auto step = decoder.decode({&byte, 1});
      EXPECT_TRUE(step) << "the vault's own framing";
      if (!step) co_return false;
      request.body += step->data;
    }
    co_return true;
  }

  net::Event never_;
};

class HostileGateProcess : public VaultProcess {
 protected:
  // The test's body, with the vault started and its credential loaded.
  void against_the_vault(net::Task<> attack) { net::test::run(worker_, start_and(std::move(attack))); }

  net::Task<> start_and(net::Task<> attack) {
    send_start(upstream_.tls.port(), upstream_.tls.ca_pem());
    co_await expect<wire::Ready>();
    send(wire::VaultCredential{"forge", ""}, file_with(std::string(kToken) + "\n"));
    EXPECT_EQ((co_await expect<wire::CredentialLoaded>()).problem, "");
    auto pair = os::socket_pair(os::SocketKind::Packet).value();
    send(wire::VaultGate{}, std::move(pair.second));
    gate_ = std::move(pair.first);
    worker_.spawn("warden", hear_events());
    co_await std::move(attack);
    expect_permitted_requests_alone();
  }

  net::Task<> hear_events() {
    for (;;) {
      auto packet = co_await warden_->receive();
      if (!packet || !*packet) co_return;
      auto message = wire::decode_from_vault((*packet)->bytes);
      if (!message) co_return;
      const auto* event = std::get_if<wire::VaultEvent>(&*message);
      if (event == nullptr) continue;
      EXPECT_THAT(event->event.detail + event->event.path, testing::Not(HasSubstr(kToken)));
      alarms_ += event->event.kind == audit::Kind::Alarm ? 1 : 0;
    }
  }

  // Hands over a lane, or whatever it is. Waits while the vault has not read the packets before.
  net::Task<> hand_over(int fd, std::string_view hello = kLaneHello) {
    const std::array fds{fd};
    co_await hand_over(fds, hello);
  }
  net::Task<> hand_over(std::span<const int> fds, std::string_view hello = kLaneHello) {
    ::fcntl(gate_.get(), F_SETFL, O_NONBLOCK);
    for (;;) {
      const Status sent = os::send_packet(gate_.get(), hello, fds);
      if (sent || sent.error().reason != Reason::Overloaded) co_return;
      co_await worker_.sleep(std::chrono::milliseconds(1));
    }
  }
  net::Task<Fd> new_lane() {
    auto pair = os::socket_pair(os::SocketKind::Stream).value();
    co_await hand_over(pair.second.get());
    co_return std::move(pair.first);
  }

  // Everything that the vault says to these bytes until it closes the lane or one answer has ended.
  struct Heard {
    std::string bytes;
    std::optional<Error> error;
    int frames = 0;
    bool answered = false;
    bool closed = false;
  };
  enum class Until : std::uint8_t { Answered, Closed };
  net::Task<Heard> say(std::string bytes, Until until = Until::Answered) {
    Frames frames(net::make_socket_stream(worker_, co_await new_lane(), net::Peer::Vault));
    (void)co_await frames.stream().write_all(bytes);
    co_return co_await hear(frames, until);
  }
  static net::Task<Heard> hear(Frames& frames, Until until = Until::Answered) {
    Heard heard;
    while (!heard.answered || until == Until::Closed) {
      auto header = co_await frames.read_header();
      heard.closed = !header || !*header;
      if (heard.closed) co_return heard;
      ++heard.frames;
      auto payload = co_await frames.read_payload((*header)->bytes);
      if (!payload) co_return heard;
      heard.bytes += *payload;
      if ((*header)->type == FrameType::Error) heard.error = decode_error(*payload).value();
      heard.answered = heard.answered || (*header)->type == FrameType::AnswerEnd;
    }
    co_return heard;
  }

  net::Task<> expect_served() {
    const Heard heard = co_await say(head_frame(head(BodyKind::Declared, 4)) +
                                     frame(FrameType::Body, "good") + frame(FrameType::BodyEnd, ""));
    EXPECT_TRUE(heard.answered) << (heard.error ? heard.error->detail : "");
    EXPECT_THAT(heard.bytes, HasSubstr("ok"));
  }

  net::Task<bool> is_served() {
    const Heard heard = co_await say(head_frame(head(BodyKind::Open)) + frame(FrameType::BodyEnd, ""));
    co_return heard.answered;
  }

  // Sends pieces until the stream is closed.
  net::Task<> upload(net::Stream& stream, std::string start, const std::string& piece) {
    ++uploading_;
    auto sent = co_await stream.write_all(start);
    while (sent) {
      sent = co_await stream.write_all(piece);
      ++moved_;
    }
    --uploading_;
  }

  // Whatever was tried: what the upstream saw has one of these heads, byte for byte.
  void expect_permitted_requests_alone() {
    const std::string user(policy::basic_user(policy::HostKind::Generic));
    const std::string line = "Authorization: Basic " + base64(user + ":" + std::string(kToken)) + "\r\n\r\n";
    for (const auto& request : upstream_.seen) {
      std::string framing = request->head;
      const std::string start = "POST /acme/widget/git-receive-pack HTTP/1.1\r\nHost: forge.test\r\n";
      ASSERT_TRUE(framing.starts_with(start)) << request->head;
      ASSERT_TRUE(framing.ends_with(line)) << request->head;
      framing = framing.substr(start.size(), framing.size() - start.size() - line.size());
      EXPECT_THAT(framing,
                  testing::MatchesRegex("(Transfer-Encoding: chunked|Content-Length: [0-9]+)?(\r\n)?"));
    }
  }
  std::size_t whole_requests() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(upstream_.seen, [](const auto& request) { return request->whole; }));
  }

  std::size_t resident_kib() const {
    std::ifstream status("/proc/" + std::to_string(child_.pid) + "/status");
    std::string word;
    std::size_t kib = 0;
    while (status >> word) {
      if (word == "VmRSS:") status >> kib;
    }
    EXPECT_GT(kib, 0U);
    return kib;
  }
  void expect_growth_is_bounded(std::size_t before_kib) const {
    EXPECT_LT(resident_kib(), before_kib + kMaxGrowthKib);
  }

  RecordingServer upstream_{worker_};
  Fd gate_;
  int alarms_ = 0;
  int uploading_ = 0;
  std::size_t moved_ = 0;  // pieces of bodies
};

TEST_F(HostileGateProcess, GetsNothingByWhatItSaysOnALane) {
  const auto attack = [&]() -> net::Task<> {
    for (const HostileCase& c : kHostileCases) {
      // What is behind the fault is not looked at, a permitted request neither.
      const Heard heard = co_await say(
          c.bytes + head_frame(head(BodyKind::None)) + frame(FrameType::BodyEnd, ""), Until::Closed);
      EXPECT_TRUE(heard.error && heard.error->reason == Reason::VaultRefused) << c.sentence;
      // A request without a body may have had its answer before what followed was refused.
      if (c.requests == 0) EXPECT_EQ(heard.frames, 1) << c.sentence;
      EXPECT_TRUE(heard.closed) << c.sentence;
      EXPECT_THAT(heard.bytes, testing::Not(HasSubstr(kToken))) << c.sentence;
    }
    // Of a head that announces no body the upstream has all; what the gate said behind it was too late.
    EXPECT_LE(whole_requests(), 1U);
    EXPECT_TRUE(std::ranges::all_of(upstream_.seen,
                                    [](const auto& each) { return !each->whole || each->body.empty(); }));
    co_await expect_served();
  };
  against_the_vault(attack());
  EXPECT_GT(alarms_, 0);
  EXPECT_LE(alarms_, 2 * kMaxAlarmsPerMinute);
}

TEST_F(HostileGateProcess, CannotHideARequestInABody) {
  const std::string hidden =
      "0\r\n\r\nPOST /evil/repo/git-receive-pack HTTP/1.1\r\nHost: forge.test\r\nContent-Length: "
      "9999\r\n\r\n";
  const auto attack = [&]() -> net::Task<> {
    for (const RequestHead& each : {head(BodyKind::Open), head(BodyKind::Declared, hidden.size())}) {
      const Heard heard =
          co_await say(head_frame(each) + frame(FrameType::Body, hidden) + frame(FrameType::BodyEnd, ""));
      EXPECT_TRUE(heard.answered);
      EXPECT_EQ(upstream_.seen.back()->body, hidden);
      co_await expect_served();
      EXPECT_EQ(upstream_.seen.back()->body, "good");
    }
  };
  against_the_vault(attack());
  EXPECT_EQ(upstream_.seen.size(), 4U);
  EXPECT_EQ(upstream_.tls.connections, 1) << "one connection, and it was not out of step";
}

TEST_F(HostileGateProcess, CannotPoisonAPooledConnection) {
  const auto attack = [&]() -> net::Task<> {
    co_await expect_served();  // leaves its connection in the pool
    // On that very connection: a body that stops in the middle. In its place: the end of the lane, an end
    // that comes too early, one byte too many, a request inside.
    const std::string half = head_frame(head(BodyKind::Declared, 9)) + frame(FrameType::Body, "half");
    for (const std::string& end : {std::string(), frame(FrameType::BodyEnd, ""),
                                   frame(FrameType::Body, "halfXX"), head_frame(head(BodyKind::None))}) {
      {
        Frames frames(net::make_socket_stream(worker_, co_await new_lane(), net::Peer::Vault));
        const std::size_t before = upstream_.seen.size();
        EXPECT_TRUE(co_await frames.stream().write_all(half));
        while (upstream_.seen.size() == before) co_await worker_.sleep(std::chrono::milliseconds(1));
        EXPECT_TRUE(co_await frames.stream().write_all(end));
        if (!end.empty()) EXPECT_TRUE((co_await hear(frames)).error);
      }
      const int poisoned = upstream_.seen.back()->connection;
      EXPECT_FALSE(upstream_.seen.back()->whole);
      co_await expect_served();
      EXPECT_GT(upstream_.seen.back()->connection, poisoned);
    }
  };
  against_the_vault(attack());
  EXPECT_EQ(whole_requests(), 5U);
}

TEST_F(HostileGateProcess, CannotHandOverWhatIsNoLane) {
  const auto attack = [&]() -> net::Task<> {
    const Fd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const Fd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const Fd file = file_with("not a lane");
    const Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const Fd reads(pipe[0]);
    const Fd writes(pipe[1]);
    std::array<int, 2> datagrams{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams.data()), 0);
    const Fd one(datagrams[0]);
    const Fd other(datagrams[1]);
    const Fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sa_family_t unnamed = AF_UNIX;  // binds to a name of the kernel's choice
    EXPECT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&unnamed), sizeof unnamed), 0);
    EXPECT_EQ(::listen(listening.get(), 1), 0);
    const net::test::Listener tcp;
    const Fd connected = tcp.connect();
    const auto packets = os::socket_pair(os::SocketKind::Packet).value();
    const int cases[] = {device.get(),    folder.get(), file.get(),          epoll.get(),
                         reads.get(),     writes.get(), one.get(),           listening.get(),
                         connected.get(), tcp.fd(),     packets.first.get(), gate_.get()};
    for (const int fd : cases) co_await hand_over(fd);
    co_await hand_over(std::span<const int>());
    const std::vector<int> many(os::kMaxPacketFds, device.get());
    co_await hand_over(many);
    const auto pair = os::socket_pair(os::SocketKind::Stream).value();
    co_await hand_over(pair.first.get(), "sallyport lane 2");
    co_await hand_over(pair.first.get(), std::string(kLaneHello) + " ");
    // A socket without a peer, and both ends of one pair: they are lanes, on which nothing can be said.
    const Fd unconnected(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    co_await hand_over(unconnected.get());
    co_await hand_over(pair.first.get());
    co_await hand_over(pair.second.get());
    co_await expect_served();
    EXPECT_GE(alarms_, 16);
  };
  against_the_vault(attack());
  EXPECT_EQ(whole_requests(), 1U);
}

TEST_F(HostileGateProcess, CannotMakeTheVaultGrowOrStopByNumbers) {
  const auto attack = [&]() -> net::Task<> {
    co_await expect_served();
    const std::size_t before = resident_kib();
    // Packets that are no lanes, as large as they may be.
    const std::string junk(os::kMaxPacketBytes, 'x');
    for (int i = 0; i < 3000; ++i) co_await hand_over(std::span<const int>(), junk);
    EXPECT_LE(alarms_, 2 * kMaxAlarmsPerMinute);
    // Thousands of lanes: those over the limit are closed.
    std::vector<Fd> kept;
    for (int i = 0; i < 4000; ++i) {
      Fd lane = co_await new_lane();
      if (kept.size() < kMaxLanes) kept.push_back(std::move(lane));
    }
    // Each with the beginning of a head, byte by byte, and then the most that one may announce.
    const std::string start = head_frame(head(BodyKind::Open)).substr(0, 12);
    for (const char c : start) {
      for (const Fd& lane : kept) (void)::send(lane.get(), &c, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      co_await worker_.sleep(std::chrono::milliseconds(1));
    }
    expect_growth_is_bounded(before);
    kept.clear();
    co_await worker_.sleep(std::chrono::milliseconds(1));
    while (!co_await is_served()) co_await worker_.sleep(std::chrono::milliseconds(1));
    expect_growth_is_bounded(before);
  };
  against_the_vault(attack());
}

TEST_F(HostileGateProcess, CannotMakeTheVaultGrowByBodiesThatNobodyReads) {
  constexpr int kUploads = 100;
  const auto attack = [&]() -> net::Task<> {
    co_await expect_served();
    const std::size_t before = resident_kib();
    upstream_.reads_bodies = false;
    const std::string piece = frame(FrameType::Body, std::string(kMaxPayloadBytes, 'x'));
    std::vector<std::unique_ptr<net::Stream>> uploads;
    for (int i = 0; i < kUploads; ++i) {
      uploads.push_back(net::make_socket_stream(worker_, co_await new_lane(), net::Peer::Vault));
      worker_.spawn("upload", upload(*uploads.back(), head_frame(head(BodyKind::Open)), piece));
    }
    while (upstream_.seen.size() < kUploads + 1U) co_await worker_.sleep(std::chrono::milliseconds(1));
    // Until nobody takes any more.
    for (std::size_t last = 0; last != moved_ || moved_ == 0;) {
      last = moved_;
      co_await worker_.sleep(std::chrono::milliseconds(300));
    }
    expect_growth_is_bounded(before);
    for (const auto& each : uploads) each->close();
    while (uploading_ > 0) co_await worker_.sleep(std::chrono::milliseconds(1));
  };
  against_the_vault(attack());
}

// What the kernel lets a process of the vault's own uid see of it, which is what a gate is when rootless;
// that a gate cannot even try is os/confine_test.cc's.
TEST_F(HostileGateProcess, CannotLookIntoTheVault) {
  const auto attack = [&]() -> net::Task<> {
    co_await expect_served();
    const pid_t pid = child_.pid;
    os::testing::Forked spy([pid]() -> std::string {
      if (std::string wrong = os::testing::become_user(kVaultIds); !wrong.empty()) return wrong;
      const std::string folder = "/proc/" + std::to_string(pid);
      std::string wrong;
      for (const char* name : {"/mem", "/environ", "/maps", "/smaps", "/pagemap", "/fd", "/fdinfo", "/auxv",
                               "/io", "/cwd", "/root", "/exe", "/map_files", "/task"}) {
        const std::string path = folder + name;
        const int opened = ::open(path.c_str(), O_RDONLY);
        std::array<char, 16> byte{};
        const bool is_task = std::string_view(name) == "/task";  // a list of numbers, which is no secret
        if (opened >= 0 && !is_task && ::read(opened, byte.data(), byte.size()) > 0)
          wrong += path + " was read; ";
      }
      if (::ptrace(PTRACE_ATTACH, pid, nullptr, nullptr) == 0) wrong += "PTRACE_ATTACH; ";
      if (::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0) wrong += "PTRACE_SEIZE; ";
      std::array<char, 8> copy{};
      const iovec here{copy.data(), copy.size()};
      const iovec there{reinterpret_cast<void*>(0x400000), copy.size()};
      if (::process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno != EPERM)
        wrong += "process_vm_readv; ";
      const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
      if (pidfd < 0) return wrong + "no pidfd";
      for (int fd = 0; fd < 16; ++fd) {
        if (::syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0 || errno != EPERM) wrong += "pidfd_getfd; ";
      }
      return wrong;
    });
    EXPECT_EQ(spy.finish(), "");
    co_await expect_served();
  };
  against_the_vault(attack());
}

TEST_F(VaultProcess, DoesNotBeginASessionWithAGrantThatIsCut) {
  const auto talk = [&]() -> net::Task<> {
    const std::string grant = wire::encode_grant(test_grant());
    send(wire::VaultStart{"s1"}, wire::to_memfd(std::string_view(grant).substr(0, grant.size() - 1)).value());
    const auto end = co_await warden_->receive();
    EXPECT_TRUE(!end || !*end);
  };
  net::test::run(worker_, talk());
}

}  // namespace
}  // namespace sallyport::vault
