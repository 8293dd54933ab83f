#include "session/private_git.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/act_as.h"
#include "os/safe_path.h"
#include "os/unix_socket.h"

namespace sallyport::session {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKept = "kept-";
constexpr std::size_t kShortIdDigits = 12;
constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// A folder on the way to the clone. Started as root bubblewrap runs as the sandbox's uid, and must come
// through.
constexpr mode_t kPrivate = 0700;
constexpr mode_t kPassable = 0711;

// With its missing parents. Nobody but the caller may write it.
Status make_parent(const std::string& path, mode_t mode) {
  struct stat status{};
  if (::lstat(fs::path(path).parent_path().c_str(), &status) != 0) {
    if (auto made = make_parent(fs::path(path).parent_path().string(), mode); !made) return made;
  }
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return fail_errno(Reason::Internal, "make " + path);
  }
  if (::lstat(path.c_str(), &status) != 0) return fail_errno(Reason::Internal, path);
  const bool ours = status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!S_ISDIR(status.st_mode) || !ours) {
    return fail(Reason::Internal, path + " is no folder that only you can write");
  }
  return {};
}

struct Pipe {
  Fd reading;
  Fd writing;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(Reason::Internal, "pipe");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  if (auto status = os::set_nonblocking(pipe.reading.get()); !status) return fail(std::move(status));
  return pipe;
}

bool is_plain(std::string_view ref) {
  return std::ranges::all_of(ref, [](char c) { return is_alnum(c) || std::string_view("._/-").contains(c); });
}

// The clone in a session's folder; the folder itself is ours.
std::string work_in(const std::string& folder) {
  return folder + "/work";
}

// The whole process group, before the child is reaped, since the group's number is the child's.
void kill_all(const os::Child& child) {
  (void)::kill(-child.pid, SIGKILL);
}

// Of the real repository; empty when it has none that the sandbox's user can read, to whom it is given.
std::string configuration_of(const sandbox::Mount& real, const std::optional<os::Ids>& reader) {
  const os::ActAs as_reader(reader);
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const Fd file(static_cast<int>(::syscall(SYS_openat2, real.source.get(), ".git/config", &how, sizeof how)));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  const auto text = os::read_whole(file.get(), kMaxConfigBytes);
  const auto entries = text ? sandbox::parse_git_config(*text) : fail(Reason::BadRequest, "");
  return entries ? sandbox::clone_configuration(*entries) : "";
}

Result<sandbox::Mount> copy_of(const sandbox::Mount& mount) {
  sandbox::Mount copy;
  copy.source = Fd(::fcntl(mount.source.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.source) return fail_errno(Reason::Internal, "dup");
  copy.path = mount.path;
  return copy;
}

Result<std::string> bundle_head(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return fail_errno(Reason::Internal, path);
  std::string bytes(sandbox::kMaxBundleHeadBytes, '\0');
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace

PrivateGit::PrivateGit(os::EventLoop& loop, TreeRemovals& removals, Setup setup)
    : loop_(loop), removals_(removals), setup_(std::move(setup)) {}

PrivateGit::~PrivateGit() {
  if (command_) {
    loop_.cancel(command_->timer);
    loop_.unwatch(command_->output.get());
    loop_.unwatch(command_->errors.get());
    loop_.unwatch(command_->child.pidfd.get());
    kill_all(command_->child);
    (void)os::wait_child(command_->child);
  }
  if (holds_work_) set_aside();
  if (!folder_.empty()) removals_.remove(folder_, std::move(lock_));
}

std::string PrivateGit::short_id() const {
  return setup_.session.substr(0, kShortIdDigits);
}

std::string PrivateGit::notice() const {
  return fmt::format(
      "private clone: the sandbox works on a copy of what is committed here, without changed, ignored and "
      "untracked files; its commits come back as refs/sallyport/{}/...",
      short_id());
}

// ---- the folder ----

// Under a lock on all of them, so that a start that looks for leftovers does not find it before it is locked.
Status PrivateGit::make_folder() {
  if (auto made = make_parent(setup_.clones_folder, setup_.become ? kPassable : kPrivate); !made) return made;
  const Fd lock(::open(setup_.clones_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return fail_errno(Reason::Internal, setup_.clones_folder);
  const std::string folder = setup_.clones_folder + "/" + setup_.session;
  if (::mkdir(folder.c_str(), 0700) != 0) return fail_errno(Reason::Internal, folder);
  folder_ = folder;
  if (setup_.become && ::chmod(folder.c_str(), kPassable) != 0) return fail_errno(Reason::Internal, folder);
  lock_.emplace(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!*lock_ || ::flock(lock_->get(), LOCK_EX | LOCK_NB) != 0) return fail_errno(Reason::Internal, folder);
  const std::string work = work_in(folder);
  if (::mkdir(work.c_str(), 0700) != 0) return fail_errno(Reason::Internal, work);
  if (setup_.become && ::chown(work.c_str(), setup_.ids.uid, setup_.ids.gid) != 0) {
    return fail_errno(Reason::Internal, work);
  }
  return {};
}

Result<sandbox::Mount> PrivateGit::open(const std::string& path, sandbox::Access access) const {
  sandbox::Mount mount;
  mount.source = Fd(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!mount.source || ::fstat(mount.source.get(), &status) != 0) return fail_errno(Reason::Internal, path);
  mount.path = path;
  mount.access = access;
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  mount.owner = status.st_uid;
  return mount;
}

Result<sandbox::Mount> PrivateGit::clone(const std::string& path) const {
  auto mount = open(work_in(folder_), sandbox::Access::ReadWrite);
  if (mount) mount->path = path;
  return mount;
}

void PrivateGit::remove_leftovers(const std::string& clones_folder, TreeRemovals& removals) {
  const Fd all(::open(clones_folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status{};
  if (!all || ::fstat(all.get(), &status) != 0 || status.st_uid != ::geteuid()) return;
  if (::flock(all.get(), LOCK_EX) != 0) return;
  std::vector<std::pair<std::string, Fd>> left;
  std::error_code error;
  for (auto entry = fs::directory_iterator(clones_folder, error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (entry->path().filename().string().starts_with(kKept)) continue;
    Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) left.emplace_back(path, std::move(folder));
  }
  (void)::flock(all.get(), LOCK_UN);
  for (auto& [path, lock] : left) removals.remove(path, std::move(lock));
}

// ---- the three commands ----

void PrivateGit::make(const sandbox::Mount& real, Done done) {
  if (auto made = make_folder(); !made) return done(fail(std::move(made)));
  auto source = copy_of(real);
  auto again = copy_of(real);
  auto target = clone("");
  if (!source || !again || !target) return done(fail(Reason::Internal, "the private clone cannot be opened"));
  real_ = std::move(*again);
  auto spec = sandbox::make_clone(std::move(*source), std::move(*target),
                                  configuration_of(real, setup_.become), setup_.ignored);
  run(std::move(spec), kMaxListBytes, std::nullopt, [this, done = std::move(done)](Result<std::string> ids) {
    if (!ids) return done(fail(Reason::BadRequest, "the private clone: " + ids.error().detail));
    start_ = std::move(*ids);
    done({});
  });
}

void PrivateGit::bring_back(Told told) {
  told_ = std::move(told);
  auto hostile = clone("");
  const std::string path = folder_ + "/bundle";
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool given = file && (!setup_.become || ::fchown(file.get(), setup_.ids.uid, setup_.ids.gid) == 0);
  if (!hostile || !given) return keep("its folder cannot be opened");
  run(sandbox::pack_clone(std::move(*hostile), start_), kMaxBundleBytes, std::move(file),
      [this](const Result<std::string>& packed) { on_packed(packed); });
}

void PrivateGit::on_packed(const Result<std::string>& packed) {
  if (!packed) return keep(packed.error().detail);
  const std::string path = folder_ + "/bundle";
  auto bundle = open(path, sandbox::Access::ReadOnly);
  const auto bytes = bundle_head(path);
  if (!bundle || !bytes) return keep("what was packed cannot be read");
  if (bytes->empty()) return tell({"private clone: nothing was committed or changed in it"});
  const auto head = sandbox::parse_bundle_head(*bytes);
  if (!head) return keep(head.error().detail);
  auto real = copy_of(real_);
  if (!real) return keep(real.error().detail);
  run(sandbox::fetch_bundle(std::move(*real), std::move(*bundle), *head, short_id()), kMaxListBytes,
      std::nullopt, [this](const Result<std::string>& names) { on_fetched(names); });
}

void PrivateGit::on_fetched(const Result<std::string>& names) {
  if (!names) return keep(names.error().detail);
  const std::string prefix = "refs/sallyport/" + short_id();
  std::vector<std::string> lines;
  std::size_t count = 0;
  std::string first;
  for (const std::string_view name : split(*names, '\n')) {
    if (name.empty()) continue;
    // Into a command that people copy goes no name that a shell would read as more than a name.
    if (is_plain(name) && (first.empty() || first.ends_with("/uncommitted"))) first = name;
    if (++count <= kMaxRefsTold)
      lines.push_back("private clone: came back as " + escaped(name, sandbox::kMaxTextBytes));
  }
  if (count > kMaxRefsTold) lines.push_back(fmt::format("private clone: and {} more", count - kMaxRefsTold));
  if (!first.empty()) {
    lines.push_back(
        fmt::format("private clone: look with: git log -p {0} ; take with: git merge {0}", first));
  }
  lines.push_back(
      fmt::format("private clone: drop with: git for-each-ref --format='delete %(refname)' {} | "
                  "git update-ref --stdin",
                  prefix));
  tell(std::move(lines));
}

// Where it is then.
std::string PrivateGit::set_aside() {
  std::string kept = setup_.clones_folder + "/" + std::string(kKept) + setup_.session;
  if (::rename(folder_.c_str(), kept.c_str()) == 0) folder_.clear();
  return kept;
}

void PrivateGit::tell(std::vector<std::string> lines) {
  holds_work_ = false;
  told_(std::move(lines));
}

void PrivateGit::keep(const std::string& why) {
  const std::string kept = set_aside();
  tell(
      {fmt::format("private clone: its commits did not come back: {}", why),
       fmt::format(
           "private clone: it is kept in {}/work. Run no git in there: what it holds was made in the sandbox",
           kept)});
}

// ---- one command ----

void PrivateGit::run(sandbox::SealedSpec spec, std::uint64_t limit, std::optional<Fd> file,
                     std::function<void(Result<std::string>)> done) {
  auto output = make_pipe();
  auto errors = make_pipe();
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!output || !errors || !nothing) return done(fail(Reason::Internal, "no descriptors left"));
  spec.ids = setup_.ids;
  spec.become = setup_.become;
  spec.stdio = {nothing.get(), output->writing.get(), errors->writing.get()};
  auto child = sandbox::start_sealed(spec);
  if (!child) return done(fail(std::move(child)));
  command_ = std::make_unique<Command>();
  command_->child = std::move(*child);
  command_->output = std::move(output->reading);
  command_->errors = std::move(errors->reading);
  command_->file = std::move(file);
  command_->limit = limit;
  command_->done = std::move(done);
  command_->timer = loop_.after(kCommandLimit, [this] { end("it took too long"); });
  loop_.watch(command_->output.get(), POLLIN, [this](short) { on_output(); });
  loop_.watch(command_->errors.get(), POLLIN, [this](short) { on_errors(); });
  loop_.watch(command_->child.pidfd.get(), POLLIN, [this](short) { on_end(); });
}

void PrivateGit::on_output() {
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::read(command_->output.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return loop_.unwatch(command_->output.get());
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    command_->received += bytes.size();
    if (command_->received > command_->limit) return end(fmt::format("it is over {} bytes", command_->limit));
    if (!command_->file) {
      command_->output_text += bytes;
    } else if (::write(command_->file->get(), bytes.data(), bytes.size()) != got) {
      return end("it cannot be written: " + errno_text(errno));
    }
  }
}

void PrivateGit::on_errors() {
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(command_->errors.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return loop_.unwatch(command_->errors.get());
    const std::size_t room = kMaxErrorBytes - command_->error_text.size();
    command_->error_text.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

void PrivateGit::end(std::string failure) {
  if (command_->failure.empty()) command_->failure = std::move(failure);
  loop_.unwatch(command_->output.get());
  kill_all(command_->child);
}

void PrivateGit::on_end() {
  if (command_->failure.empty()) on_output();
  on_errors();
  loop_.cancel(command_->timer);
  loop_.unwatch(command_->output.get());
  loop_.unwatch(command_->errors.get());
  loop_.unwatch(command_->child.pidfd.get());
  kill_all(command_->child);
  const auto status = os::wait_child(command_->child);
  Command ended = std::move(*command_);
  command_.reset();
  if (!ended.failure.empty()) return ended.done(fail(Reason::Internal, std::move(ended.failure)));
  if (!status || !status->ok()) {
    const std::string said = escaped(trimmed(split(ended.error_text, '\n').front()), kMaxErrorBytes);
    return ended.done(fail(Reason::Internal, said.empty() ? "git failed" : "git says: " + said));
  }
  ended.done(std::move(ended.output_text));
}

}  // namespace sallyport::session
