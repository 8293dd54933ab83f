#include "sandbox/workspace_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "sandbox/git_guard.h"

namespace sallyport::sandbox {
namespace {

constexpr std::uint32_t kNames = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR;
// Of a linked worktree, whose pointers matter by what stands in them.
constexpr std::uint32_t kContents = kNames | IN_MODIFY;
// One look at what a sandbox may have changed a million times; the rest waits for the next round of the loop.
constexpr int kMaxReads = 16;
constexpr int kMaxAsideNames = 10;

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// Whether its name still leads to it.
bool is_there(const GuardedFolder& folder) {
  return id_at(AT_FDCWD, folder.path) == id_of(folder.fd.get());
}

// Whether a program of our network namespace is bound to it; those inside are in another. One that was bound
// by a relative path is known by its name alone.
bool is_bound_outside(const FileId& socket, const std::string& name) {
  std::ifstream table("/proc/self/net/unix");
  std::string line;
  while (std::getline(table, line)) {
    const std::size_t slash = line.find('/');
    const std::size_t start = slash == std::string::npos ? line.rfind(' ') : line.rfind(' ', slash);
    if (start == std::string::npos) continue;
    const std::string path = line.substr(start + 1);
    if (path.starts_with('/') ? id_at(AT_FDCWD, path) == socket : last_part(path) == name) return true;
  }
  return false;
}

bool give_back_rights(int folder) {
  return ::chmod(fmt::format("/proc/self/fd/{}", folder).c_str(), S_IRWXU) == 0;
}

std::string after_setting_aside(const std::string& path, const std::optional<std::string>& aside) {
  return aside ? fmt::format("It was renamed to {}", escaped(*aside))
               : fmt::format("It could not be renamed: remove {} before you call git there", escaped(path));
}

}  // namespace

std::optional<std::string> set_aside(const GuardedFolder& folder, const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : name.substr(0, slash);
  const std::string last = last_part(name);
  const auto opened = open_beneath(folder.fd.get(), folder.path, parent, O_PATH | O_DIRECTORY);
  if (!opened || !*opened) return std::nullopt;
  const int fd = (*opened)->get();
  for (int number = 1; number <= kMaxAsideNames; ++number) {
    const std::string aside = fmt::format("{}.set-aside-{}", last, number);
    if (::renameat2(fd, last.c_str(), fd, aside.c_str(), RENAME_NOREPLACE) == 0) return aside;
    // A folder of our user's that the sandbox took its own right to write from.
    if (errno == EACCES && give_back_rights(fd) &&
        ::renameat2(fd, last.c_str(), fd, aside.c_str(), RENAME_NOREPLACE) == 0) {
      return aside;
    }
    if (errno != EEXIST) return std::nullopt;
  }
  return std::nullopt;
}

Result<WorkspaceWatch> WorkspaceWatch::begin(const WorkspaceGuard& guard) {
  WorkspaceWatch watch(guard);
  watch.inotify_ = Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!watch.inotify_) return fail_errno(Reason::Internal, "inotify");
  for (const FixedPlace& place : guard.fixed) watch.names_.insert(place.name);
  for (const AbsentPlace& place : guard.absent) watch.names_.insert(last_part(place.name));
  // Renaming these makes git look for a repository elsewhere, or for its data.
  for (const char* name : {"HEAD", "objects", "refs", "info"}) watch.names_.insert(name);
  for (std::size_t number = 0; number < guard.folders.size(); ++number) watch.watch(number);
  for (const GuardedWorktrees& worktrees : guard.worktrees) {
    const GuardedFolder& folder = guard.folders[worktrees.folder];
    watch.worktrees_.insert(::inotify_add_watch(
        watch.inotify_.get(), fmt::format("/proc/self/fd/{}", folder.fd.get()).c_str(), kNames));
  }
  return watch;
}

void WorkspaceWatch::watch(std::size_t number) {
  // Beyond the limit, or what cannot be watched: the look at the end finds it still.
  if (watched_ == kMaxFolders) return;
  const std::string path = fmt::format("/proc/self/fd/{}", guard_->folders[number].fd.get());
  const int wd = ::inotify_add_watch(inotify_.get(), path.c_str(), kNames);
  if (wd < 0) return;
  ++watched_;
  watched_folders_.emplace(wd, number);
}

// A worktree that somebody adds meanwhile. Which one is not asked: every such folder is looked at.
void WorkspaceWatch::watch_worktree(const std::string& name) {
  for (const GuardedWorktrees& worktrees : guard_->worktrees) {
    const GuardedFolder& folder = guard_->folders[worktrees.folder];
    const auto opened = open_beneath(folder.fd.get(), folder.path, name, O_PATH | O_DIRECTORY);
    if (!opened || !*opened || watched_ == kMaxFolders) continue;
    const int wd = ::inotify_add_watch(inotify_.get(),
                                       fmt::format("/proc/self/fd/{}", (*opened)->get()).c_str(), kContents);
    if (wd >= 0 && worktree_.insert(wd).second) ++watched_;
  }
}

void WorkspaceWatch::look_for_socket(const GuardedFolder& folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  const std::string path = joined(folder.path, name);
  if (!S_ISSOCK(status.st_mode) || !is_bound_outside({status.st_dev, status.st_ino}, name)) return;
  add(sockets_, path, Finding::Consequence::EndSession,
      fmt::format(
          "a program outside of the sandbox made the socket {}, by which the sandbox reaches it. Start "
          "it before the sandbox, which hides the socket, or have it make its socket elsewhere",
          escaped(path)));
}

// Whether anything happened that matters.
bool WorkspaceWatch::take_events() {
  bool matters = false;
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  for (int reads = 0; reads < kMaxReads; ++reads) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      matters |= (event->mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT)) != 0;
      if (event->len == 0) continue;
      const std::string_view name = event->name;
      const bool made = (event->mask & (IN_CREATE | IN_MOVED_TO)) != 0;
      if (const auto folder = watched_folders_.find(event->wd); made && folder != watched_folders_.end()) {
        look_for_socket(guard_->folders[folder->second], std::string(name));
      }
      if (made && worktrees_.contains(event->wd)) watch_worktree(std::string(name));
      matters |= worktrees_.contains(event->wd) || worktree_.contains(event->wd) || names_.contains(name);
    }
  }
  return matters;
}

std::vector<Finding> WorkspaceWatch::on_change() {
  const bool matters = take_events();
  std::vector<Finding> findings = std::exchange(sockets_, {});
  if (matters) std::ranges::move(look(), std::back_inserter(findings));
  return findings;
}

std::vector<Finding> WorkspaceWatch::look() {
  std::vector<Finding> findings;
  look_at_absent(findings);
  look_at_tops(findings);
  look_at_worktrees(findings);
  look_at_fixed(findings);
  return findings;
}

void WorkspaceWatch::add(std::vector<Finding>& findings, const std::string& path,
                         Finding::Consequence consequence, std::string text) {
  if (found_.insert(path).second) findings.push_back({consequence, std::move(text)});
}

void WorkspaceWatch::look_at_fixed(std::vector<Finding>& findings) {
  for (const FixedPlace& place : guard_->fixed) {
    const GuardedFolder& folder = guard_->folders[place.folder];
    const auto id = id_at(folder.fd.get(), place.name);
    if (id == place.id || (!id && place.gone == FixedPlace::Gone::Fine)) continue;
    const std::string path = joined(folder.path, place.name);
    add(findings, path, Finding::Consequence::EndSession,
        fmt::format(
            "{} was replaced or removed by a program outside of the sandbox, and so lost its protection: "
            "the sandbox could have written to it. Look at it before you call git there, and do not "
            "change it while a sandbox runs",
            escaped(path)));
  }
}

void WorkspaceWatch::look_at_absent(std::vector<Finding>& findings) {
  for (const AbsentPlace& place : guard_->absent) {
    const GuardedFolder& folder = guard_->folders[place.folder];
    const auto opened = open_beneath(folder.fd.get(), folder.path, place.name, O_PATH | O_NOFOLLOW);
    // A link that was put there is an error of opening beneath: found as well.
    if (opened && !*opened) continue;
    const std::string path = joined(folder.path, place.name);
    if (place.answer == AbsentPlace::Answer::Report) {
      add(findings, path, Finding::Consequence::Report,
          fmt::format(
              "{} was made during the run, maybe by the sandbox, and would be the policy of the next run: "
              "read it before",
              escaped(path)));
      continue;
    }
    const auto aside = set_aside(folder, place.name);
    if (!aside && !id_at(folder.fd.get(), place.name) && !place.name.contains('/')) continue;  // gone again
    add(findings, path, Finding::Consequence::EndSession,
        fmt::format("{} was planted: git would have obeyed it outside of the sandbox. {}", escaped(path),
                    after_setting_aside(path, aside)));
  }
}

// Git takes the top itself for a repository when .git is damaged.
void WorkspaceWatch::look_at_tops(std::vector<Finding>& findings) {
  for (const GuardedTop& top : guard_->tops) {
    const GuardedFolder& folder = guard_->folders[top.folder];
    const bool has_git = id_at(folder.fd.get(), ".git").has_value();
    if (!has_git || !looks_like_git_folder(folder.fd.get())) continue;
    const auto aside = set_aside(folder, "HEAD");
    const std::string path = joined(folder.path, "HEAD");
    add(findings, path, Finding::Consequence::EndSession,
        fmt::format("{} was planted with objects and refs beside it: git would have taken the folder for a "
                    "repository once .git is damaged. {}",
                    escaped(path), after_setting_aside(path, aside)));
  }
}

void WorkspaceWatch::look_at_worktrees(std::vector<Finding>& findings) {
  for (const GuardedWorktrees& worktrees : guard_->worktrees) {
    const GuardedFolder& folder = guard_->folders[worktrees.folder];
    const auto names = names_in(folder.fd.get(), kMaxWorktrees);
    if (!names) {
      // `git worktree prune` outside may have taken the whole folder away.
      if (!is_there(folder)) continue;
      add(findings, folder.path, Finding::Consequence::EndSession,
          fmt::format("{} cannot be read, or has more than {} linked worktrees now, which are not looked at: "
                      "the sandbox may hide one there that leads git to another folder's configuration. Call "
                      "no git there before you have looked, and removed those that you do not know",
                      escaped(folder.path), kMaxWorktrees));
      continue;
    }
    for (const std::string& name : *names) {
      if (worktree_is_sound(folder.fd.get(), name)) continue;
      const std::string path = joined(folder.path, name + "/commondir");
      const auto aside = set_aside(folder, name + "/commondir");
      add(findings, path, Finding::Consequence::EndSession,
          fmt::format("{} was planted: it leads git to another folder's configuration. {}", escaped(path),
                      after_setting_aside(path, aside)));
    }
  }
}

}  // namespace sallyport::sandbox
