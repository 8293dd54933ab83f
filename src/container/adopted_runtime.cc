#include "container/adopted_runtime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "base/text.h"
#include "container/joined_namespace.h"
#include "container/specs.h"
#include "os/process.h"

namespace sallyport::container {
namespace {

// Of a container's id: its host name, unless it was given another.
constexpr std::size_t kHostnameCharacters = 12;

}  // namespace

AdoptedRuntime::AdoptedRuntime(os::EventLoop& loop, Host& host, Wish wish, OnEnd on_end)
    : Runtime(std::move(on_end)),
      host_(host),
      wish_(std::move(wish)),
      adoptee_(loop, host, wish_.session,
               [this] { fall("the container " + escaped(adoptee_.state().name) + " ended"); }),
      prober_(loop, host, container_name(wish_.session, "-prober"),
              [this] { fall("its prober, " + prober_.name() + ", ended"); }) {}

AdoptedRuntime::~AdoptedRuntime() {
  if (engaged_ && !over_) host_.drop(wish_.session);
}

void AdoptedRuntime::make_namespaces(OnNamespaces on_made) {
  on_made_ = std::move(on_made);
  call_ = host_.when_ready([this](const Status& ready) {
    if (!ready) return std::exchange(on_made_, nullptr)(ready);
    engaged_ = true;
    host_.add(wish_.session);
    adoptee_.adopt(wish_.container, [this](const Status& adopted) { on_adoptee(adopted); });
  });
}

void AdoptedRuntime::on_adoptee(const Status& adopted) {
  const Status launched = adopted ? launch_prober() : adopted;
  if (!launched) std::exchange(on_made_, nullptr)(launched);
}

// First of all, since the engine takes its time to start it: meanwhile there is the rest to do. It waits for
// what it is asked.
Status AdoptedRuntime::launch_prober() {
  auto folder = SessionFolder::make(host_.settings().folder, wish_.session);
  if (!folder) return fail(std::move(folder));
  folder_.emplace(std::move(*folder));
  auto net = adoptee_.open_namespace("net");
  if (!net) return fail(std::move(net));
  net_ = std::move(*net);
  const std::string socket = folder_->path() + "/init";
  const engine::ContainerSpec spec =
      prober_spec({.image = host_.pause_image(),
                   .ids = wish_.ids,
                   .socket = socket,
                   .labels = {{kDaemonLabel, host_.settings().mark}, {kSessionLabel, wish_.session}},
                   .dialect = host_.dialect()},
                  adoptee_.state().id);
  prober_.launch(
      spec, socket, net_.get(), [this](const Result<engine::ContainerState>& state) { on_prober(state); },
      [this] { std::exchange(on_made_, nullptr)(enter()); });
  return {};
}

Status AdoptedRuntime::enter() {
  auto joined = join_namespace(net_);
  if (!joined) return fail(std::move(joined));
  builder_.emplace(std::move(joined->builder));
  namespaces_ = std::move(joined->namespaces);
  host_.add_network(net_, wish_.session);
  return {};
}

Status AdoptedRuntime::write_files(const sandbox::Contents& contents) {
  const auto files = sandbox::files_over_image(
      contents.profile, std::string_view(adoptee_.state().id).substr(0, kHostnameCharacters));
  auto written = folder_->write(files);
  if (!written) return fail(std::move(written));
  for (const PlacedFile& file : *written) files_.push_back({file.source, file.target});
  return {};
}

// Whatever process has that number: what is in the sandbox's network is the sandbox's.
Result<bool> AdoptedRuntime::furnish(pid_t joiner) {
  if (files_.empty()) return false;
  const std::string path = fmt::format("/proc/{}", joiner);
  const Fd process(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!process) return fail_errno(Reason::ProcessDied, path);
  const Fd net(::openat(process.get(), "ns/net", O_RDONLY | O_CLOEXEC));
  const Fd mounts(::openat(process.get(), "ns/mnt", O_RDONLY | O_CLOEXEC));
  if (!net || !mounts) return fail_errno(Reason::ProcessDied, path);
  struct stat its{};
  struct stat ours{};
  if (::fstat(net.get(), &its) != 0 || ::fstat(net_.get(), &ours) != 0 || its.st_ino != ours.st_ino) {
    return fail(Reason::EngineRefused, fmt::format("process {} is not in the sandbox's network", joiner));
  }
  auto helper = os::find_own_program("sallyport-netns");
  if (!helper) return fail(std::move(helper));
  auto mounted = os::mount_over(*helper, mounts, files_);
  if (!mounted) return fail(std::move(mounted));
  return true;
}

void AdoptedRuntime::start(const sandbox::Contents& contents, OnInit on_init) {
  if (left_ > 0 || over_) return on_init(fail(Reason::ProcessDied, how_));
  if (auto status = write_files(contents); !status) return on_init(fail(std::move(status)));
  if (auto furnished = furnish(static_cast<pid_t>(adoptee_.state().pid)); !furnished)
    return on_init(fail(std::move(furnished)));
  on_init_ = std::move(on_init);
  if (proved_) hand_over();
}

void AdoptedRuntime::on_prober(const Result<engine::ContainerState>& state) {
  proved_ = state ? Status() : std::unexpected(state.error());
  if (on_made_) return std::exchange(on_made_, nullptr)(*proved_);  // it was not even made
  if (on_init_) hand_over();
}

void AdoptedRuntime::hand_over() {
  const auto on_init = std::exchange(on_init_, nullptr);
  if (!*proved_) return on_init(std::unexpected(proved_->error()));
  struct stat net{};
  if (::fstat(net_.get(), &net) != 0) return on_init(fail_errno(Reason::Internal, "fstat"));
  const engine::ContainerState& adopted = adoptee_.state();
  identity_ =
      fmt::format("adopted container {} ({}), image {}, pid {} since {}, network namespace {}", adopted.id,
                  escaped(adopted.name), adopted.image, adopted.pid, adopted.started_at, net.st_ino);
  host_.tell_joinable();
  on_init(prober_.take_control());
}

Result<os::Doors> AdoptedRuntime::open_doors(const std::optional<Rate>& new_connections) {
  auto doors = open_redirected_doors(*builder_, new_connections);
  builder_.reset();
  return doors;
}

// Of itself: whoever waits for an answer is told, and ends it.
void AdoptedRuntime::fall(const std::string& how) {
  if (on_made_) return std::exchange(on_made_, nullptr)(fail(Reason::ProcessDied, how));
  if (on_init_) return std::exchange(on_init_, nullptr)(fail(Reason::ProcessDied, how));
  end(how);
}

bool AdoptedRuntime::kill() {
  if (!engaged_) {
    call_.reset();
    on_made_ = nullptr;
  }
  if (!engaged_ || over_) return false;
  end("it was ended");
  return true;
}

void AdoptedRuntime::end(std::string how) {
  if (left_ > 0 || over_) return;
  how_ = std::move(how);
  on_made_ = nullptr;
  on_init_ = nullptr;
  call_.reset();
  left_ = 2;
  adoptee_.end([this] { on_gone(); });
  prober_.end([this] { on_gone(); });
}

void AdoptedRuntime::on_gone() {
  if (--left_ > 0) return;
  over_ = true;
  host_.drop(wish_.session);
  builder_.reset();
  folder_.reset();
  on_end_(how_);
}

}  // namespace sallyport::container
