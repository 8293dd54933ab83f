#include "sandbox/trial_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "base/random.h"
#include "os/unix_socket.h"

namespace sallyport::sandbox {
namespace {

constexpr std::chrono::milliseconds kPatience{20'000};
constexpr os::Ids kTestIds{12345, 12345};
constexpr char kProbeLine[] = "probe-1234\n";
constexpr char kDoorLine[] = "door-5678\n";

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().detail);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

bool is_root() {
  return ::geteuid() == 0;
}

}  // namespace

Trial::Trial() {
  spec.ids = is_root() ? kTestIds : os::Ids{::getuid(), ::getgid()};
  if (is_root()) spec.become = kTestIds;

  const std::string path = folder_.path() + "/work space";
  if (::mkdir(path.c_str(), 0755) != 0 || ::chown(path.c_str(), spec.ids.uid, spec.ids.gid) != 0) {
    throw std::runtime_error("cannot make a workspace");
  }
  mounts.push_back(must(open_mount({.path = path}, {})));
  spec.mounts = mounts;

  builder_.emplace(must(os::NamespaceBuilder::start({.helper = SALLYPORT_NETNS, .become = spec.become})));
  space_ = must(builder_->namespaces());
  spec.user_namespace = space_.user.get();
  spec.net_namespace = space_.net.get();

  const ProfileInput input{.ids = spec.ids,
                           .user_name = "tester",
                           .home = "/home/tester",
                           .system_roots_pem = "roots\n",
                           .session_ca_pem = "session ca\n",
                           .git = {.name = "Ann \"A\" Example", .email = "ann@example.com"}};
  spec.profile = make_profile(input);
  workload.cwd = path;
  workload.environment = must(make_environment(input, {"TERM=xterm"}, {}, path)).variables;
  workload.argv = {"/bin/true"};

  null_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  output_ = Fd(::memfd_create("output", MFD_CLOEXEC));
  spec.stdio = {null_.get(), output_.get(), output_.get()};
  init_program_ = Fd(::open(SALLYPORT_INIT, O_PATH | O_CLOEXEC));
  spec.init_program = init_program_.get();
  std::tie(control_, init_end_) = must(os::socket_pair(os::SocketKind::Packet));
  spec.control = init_end_.get();

  decoys_ = must(Decoys::open());
  phase1.decoys = decoys_->list();
  phase1.unreachable = {*os::endpoint_from("192.0.2.77", 443), *os::endpoint_from("2001:db8::77", 443)};
  phase1.canary = "canary-" + random_hex(16);
}

Trial::~Trial() {
  if (child_) static_cast<void>(os::kill_child(*child_, SIGKILL));
  if (child_) static_cast<void>(os::wait_child(*child_));
  stop_write_.reset();
  if (door_.joinable()) door_.join();
}

void Trial::start() {
  phase1.terminal = spec.terminal;
  if (phase1.mounts.empty()) phase1.mounts = expected_mounts(mounts);
  spec.mounts = mounts;
  BubblewrapCall call = must(bubblewrap_call(spec));
  os::SpawnSpec spawn = spawn_spec(spec, call);
  if (tamper) {
    tamper(call, spawn);
    spawn.argv = call.argv;
    spawn.descriptors = call.descriptors;
  }
  child_ = must(os::spawn(spawn));
  init_end_.reset();
}

void Trial::send(const ToInit& message) {
  must(os::send_packet(control_.get(), encode(message)));
}

void Trial::exec(CommandId command, std::vector<std::string> argv, int terminal) {
  const Fd packed = must(pack_workload({std::move(argv), workload.environment, workload.cwd}));
  const bool has_terminal = terminal >= 0;
  const int out = has_terminal ? terminal : output_.get();
  const int fds[] = {packed.get(), has_terminal ? terminal : null_.get(), out, out};
  const Exec message{command, has_terminal ? Terminal::Stdin : Terminal::None};
  must(os::send_packet(control_.get(), encode(ToInit(message)), fds));
}

FromInit Trial::receive() {
  const os::Packet packet = must(os::recv_packet_within(control_.get(), kPatience));
  if (packet.end) throw std::runtime_error("sallyport-init is gone: " + output());
  return must(decode_from_init(packet.bytes));
}

std::optional<Failed> Trial::run_phase1() {
  if (!child_) start();
  const Fd packed = must(pack_workload(workload));
  const int fds[] = {packed.get()};
  must(os::send_packet(control_.get(), encode(ToInit(phase1)), fds));
  const FromInit answer = receive();
  if (const auto* failed = std::get_if<Failed>(&answer)) return *failed;
  if (std::get<Passed>(answer).phase != 1) throw std::runtime_error("not phase 1");
  return std::nullopt;
}

std::optional<Failed> Trial::run_phase2(std::string answer) {
  doors_ = must(builder_->open_doors());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  stop_read_ = Fd(ends[0]);
  stop_write_ = Fd(ends[1]);
  door_ = std::thread(
      [this, line = answer.empty() ? std::string(kDoorLine) : std::move(answer)] { serve_door(line); });

  send(Phase2{.must_be_door = {*os::endpoint_from("192.0.2.77", 443), *os::endpoint_from("2001:db8::77", 80)},
              .decoys = decoys_->list(),
              .probe_line = kProbeLine,
              .door_line = kDoorLine});
  const FromInit reply = receive();
  if (const auto* failed = std::get_if<Failed>(&reply)) return *failed;
  if (std::get<Passed>(reply).phase != 2) throw std::runtime_error("not phase 2");
  return std::nullopt;
}

// Every connection gets the line once it has sent something, until the test is over.
void Trial::serve_door(std::string answer) {
  std::vector<pollfd> waiting = {{stop_read_.get(), POLLIN, 0}};
  for (const os::Listener& listener : doors_.listeners) {
    if (listener.kind == os::ListenerKind::Tcp) waiting.push_back({listener.fd.get(), POLLIN, 0});
  }
  while (::poll(waiting.data(), waiting.size(), -1) > 0 && waiting[0].revents == 0) {
    for (const pollfd& listener : waiting) {
      if (listener.revents == 0) continue;
      const Fd connection(::accept4(listener.fd, nullptr, nullptr, SOCK_CLOEXEC));
      char probe[sizeof kProbeLine] = {};
      if (!connection || ::recv(connection.get(), probe, sizeof probe - 1, 0) <= 0) continue;
      static_cast<void>(::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL));
    }
  }
}

void Trial::go() {
  if (const auto failed = run_phase1()) {
    throw std::runtime_error("phase 1: " + std::string(name(failed->check)) + ": " + failed->detail);
  }
  if (const auto failed = run_phase2()) {
    throw std::runtime_error("phase 2: " + std::string(name(failed->check)) + ": " + failed->detail);
  }
  send(Go{});
  static_cast<void>(std::get<Started>(receive()));
}

Exited Trial::finish() {
  if (!child_) go();
  return std::get<Exited>(receive());
}

os::ExitStatus Trial::wait() {
  const auto ended = must(os::wait_child_within(*child_, kPatience));
  if (!ended) throw std::runtime_error("bwrap does not end");
  child_.reset();
  return *ended;
}

std::string Trial::output() const {
  std::string text(64 * 1024, '\0');
  const ssize_t got = ::pread(output_.get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const std::string said = body() + "\n";
    ::_exit(::write(writing.get(), said.data(), said.size()) > 0 ? 0 : 1);
  }
  writing.reset();
  std::string said(4096, '\0');
  const ssize_t got = ::read(reading.get(), said.data(), said.size());
  ::waitpid(pid, nullptr, 0);
  if (got <= 0) return "the child died";
  return said.substr(0, static_cast<std::size_t>(got) - 1);
}

Fd listen_at(const std::string& path) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 1) != 0) {
    throw std::runtime_error("no socket at " + path);
  }
  return socket;
}

Fd open_pty_like_80x24() {
  Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  if (!master || ::ioctl(master.get(), TIOCSWINSZ, &size) != 0) throw std::runtime_error("no terminal");
  return master;
}

Outcome run_script(const std::string& script) {
  Trial trial;
  trial.workload.argv = {"/bin/sh", "-c", script};
  const Exited exited = trial.finish();
  return {exited, trial.output()};
}

}  // namespace sallyport::sandbox
