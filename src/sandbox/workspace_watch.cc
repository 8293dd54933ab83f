#include "sandbox/workspace_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.h"
#include "os/act_as.h"
#include "sandbox/git_guard.h"

namespace sallyport::sandbox {
namespace {

constexpr std::uint32_t kNames = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR;
// Of a linked worktree, whose pointers matter by what stands in them.
constexpr std::uint32_t kContents = kNames | IN_MODIFY;
constexpr int kMaxAsideNames = 10;

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// Whether its name still leads to it.
bool is_there(const GuardedFolder& folder) {
  return id_at(AT_FDCWD, folder.path) == id_of(folder.fd.get());
}

// The paths that programs of our network namespace have bound sockets to; those inside are in another.
std::vector<std::string> paths_bound_outside() {
  std::vector<std::string> paths;
  std::ifstream table("/proc/self/net/unix");
  std::string line;
  while (std::getline(table, line)) {
    const std::size_t slash = line.find('/');
    const std::size_t start = slash == std::string::npos ? line.rfind(' ') : line.rfind(' ', slash);
    if (start != std::string::npos) paths.push_back(line.substr(start + 1));
  }
  return paths;
}

std::optional<FileId> socket_at(const GuardedFolder& folder, const std::string& name) {
  struct stat status{};
  if (::fstatat(folder.fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISSOCK(status.st_mode)) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

std::string path_of(int fd) {
  return fmt::format("/proc/self/fd/{}", fd);
}

bool give_back_rights(int folder) {
  return ::chmod(path_of(folder).c_str(), S_IRWXU) == 0;
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

WorkspaceWatch::WorkspaceWatch(os::FileWatcher& watcher, const WorkspaceGuard& guard, OnFindings on_findings)
    : watcher_(watcher),
      guard_(guard),
      on_findings_(std::move(on_findings)),
      files_(watcher, [this](const os::FileWatcher::Changes& changes) { on_changes(changes); }) {
  for (const FixedPlace& place : guard.fixed) names_.insert(place.name);
  for (const AbsentPlace& place : guard.absent) names_.insert(last_part(place.name));
  // Renaming these makes git look for a repository elsewhere, or for its data.
  for (const char* name : {"HEAD", "objects", "refs", "info"}) names_.insert(name);
}

Status WorkspaceWatch::begin() {
  if (guard_.folders.empty()) return {};
  if (auto status = watcher_.open(); !status) return status;
  for (std::size_t number = 0; number < guard_.folders.size(); ++number) watch(number);
  for (const GuardedWorktrees& worktrees : guard_.worktrees) {
    const GuardedFolder& folder = guard_.folders[worktrees.folder];
    if (const auto id = files_.add(path_of(folder.fd.get()), kNames)) worktrees_.insert(*id);
  }
  sockets_before_ = sockets_at(paths_bound_outside());
  return {};
}

void WorkspaceWatch::watch(std::size_t number) {
  // Beyond the limit, or what cannot be watched: the look at the end finds it still.
  if (watched_ == kMaxFolders) return;
  const auto id = files_.add(path_of(guard_.folders[number].fd.get()), kNames);
  if (!id) return;
  ++watched_;
  watched_folders_.emplace(*id, number);
}

// A worktree that somebody adds meanwhile. Which one is not asked: every such folder is looked at.
void WorkspaceWatch::watch_worktree(const std::string& name) {
  for (const GuardedWorktrees& worktrees : guard_.worktrees) {
    const GuardedFolder& folder = guard_.folders[worktrees.folder];
    const auto opened = open_beneath(folder.fd.get(), folder.path, name, O_PATH | O_DIRECTORY);
    if (!opened || !*opened || watched_ == kMaxFolders) continue;
    const auto id = files_.add(path_of((*opened)->get()), kContents);
    // Those of the start are among the folders.
    if (id && worktree_.insert(*id).second && !watched_folders_.contains(*id)) ++watched_;
  }
}

void WorkspaceWatch::on_changes(const os::FileWatcher::Changes& changes) {
  bool matters = changes.lost;
  std::vector<Socket> made;
  for (const os::FileWatcher::Event& event : changes.events) matters |= take(event, made);
  std::vector<Finding> findings;
  if (!made.empty()) report_bound(made, findings);
  if (changes.lost) {
    watch_worktrees();
    report_unknown(findings);
  }
  if (matters) std::ranges::move(look(), std::back_inserter(findings));
  if (findings.empty()) return;
  const OnFindings on_findings = on_findings_;
  on_findings(findings);
}

bool WorkspaceWatch::take(const os::FileWatcher::Event& event, std::vector<Socket>& made) {
  if ((event.mask & (IN_IGNORED | IN_UNMOUNT)) != 0) return true;
  if (event.name.empty()) return false;
  const std::string name(event.name);
  const bool is_new = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  if (const auto watched = watched_folders_.find(event.id); is_new && watched != watched_folders_.end()) {
    const GuardedFolder& folder = guard_.folders[watched->second];
    if (const auto id = socket_at(folder, name)) made.push_back({joined(folder.path, name), name, *id});
  }
  if (is_new && worktrees_.contains(event.id)) watch_worktree(name);
  return worktrees_.contains(event.id) || worktree_.contains(event.id) || names_.contains(name);
}

// Sockets that came up in watched folders.
void WorkspaceWatch::report_bound(const std::vector<Socket>& made, std::vector<Finding>& findings) {
  for (const std::string& path : paths_bound_outside()) {
    const bool is_absolute = path.starts_with('/');
    const auto id = is_absolute ? id_at(AT_FDCWD, path) : std::nullopt;
    for (const Socket& socket : made) {
      // One that was bound by a relative path is known by its name alone.
      if (is_absolute ? id == socket.id : last_part(path) == socket.name) report(socket, findings);
    }
  }
}

// Nobody said which ones came up.
void WorkspaceWatch::watch_worktrees() {
  for (const GuardedWorktrees& worktrees : guard_.worktrees) {
    const auto names = names_in(guard_.folders[worktrees.folder].fd.get(), kMaxWorktrees);
    if (!names) continue;  // look() tells
    for (const std::string& name : *names) watch_worktree(name);
  }
}

void WorkspaceWatch::report_unknown(std::vector<Finding>& findings) {
  for (const Socket& socket : sockets_at(paths_bound_outside())) {
    if (std::ranges::find(sockets_before_, socket) == sockets_before_.end()) report(socket, findings);
  }
}

// Those in watched folders. Asks no other folder: a file system that hangs would hold up everybody.
std::vector<WorkspaceWatch::Socket> WorkspaceWatch::sockets_at(const std::vector<std::string>& paths) const {
  std::vector<Socket> sockets;
  for (const std::string& path : paths) {
    const std::string name = last_part(path);
    const std::string parent = path.substr(0, path.size() - std::min(path.size(), name.size() + 1));
    for (const auto& [id, number] : watched_folders_) {
      const GuardedFolder& folder = guard_.folders[number];
      if (path.starts_with('/') && parent != folder.path) continue;
      if (const auto socket = socket_at(folder, name))
        sockets.push_back({joined(folder.path, name), name, *socket});
    }
  }
  return sockets;
}

void WorkspaceWatch::report(const Socket& socket, std::vector<Finding>& findings) {
  add(findings, socket.path, Finding::Consequence::EndSession,
      fmt::format(
          "a program outside of the sandbox made the socket {}, by which the sandbox reaches it. Start "
          "it before the sandbox, which hides the socket, or have it make its socket elsewhere",
          escaped(socket.path)));
}

std::vector<Finding> WorkspaceWatch::look() {
  const os::ActAs as_client(guard_.client);
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
  for (const FixedPlace& place : guard_.fixed) {
    const GuardedFolder& folder = guard_.folders[place.folder];
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
  for (const AbsentPlace& place : guard_.absent) {
    const GuardedFolder& folder = guard_.folders[place.folder];
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
  for (const GuardedTop& top : guard_.tops) {
    const GuardedFolder& folder = guard_.folders[top.folder];
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
  for (const GuardedWorktrees& worktrees : guard_.worktrees) {
    const GuardedFolder& folder = guard_.folders[worktrees.folder];
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
