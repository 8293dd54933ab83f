#include "sandbox/git_links.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "os/act_as.h"

namespace sallyport::sandbox {
namespace {

// Set aside in one session; beyond, the user is told to.
constexpr std::size_t kMaxLinksSetAside = 256;
constexpr char kRemoveThem[] =
    "before you call git there, find them (find FOLDER -type l) and remove those that you do not know";

// The guarded repositories that lie in no other one, opened; and new ones at a top.
std::vector<GuardedFolder> outermost(const WorkspaceGuard& guard) {
  std::set<std::string> paths(guard.git_folders.begin(), guard.git_folders.end());
  for (const GuardedTop& top : guard.tops) paths.insert(guard.folders[top.folder].path + "/.git");
  std::vector<GuardedFolder> found;
  // Sorted, so that what holds another comes before it.
  for (const std::string& path : paths) {
    const auto lies_in = [&](const GuardedFolder& folder) { return is_or_lies_in(path, folder.path); };
    if (std::ranges::any_of(found, lies_in)) continue;
    for (const GuardedTop& top : guard.tops) {
      const GuardedFolder& holder = guard.folders[top.folder];
      if (!is_or_lies_in(path, holder.path)) continue;
      const std::string name = path.substr(std::min(path.size(), holder.path.size() + 1));
      auto opened = open_beneath(holder.fd.get(), holder.path, name, O_PATH | O_DIRECTORY);
      if (!opened || !*opened) continue;
      found.push_back({std::move(**opened), path});
      break;
    }
  }
  return found;
}

}  // namespace

GitLinks links_in(int git_folder) {
  GitLinks links;
  std::vector<std::string> folders = {""};
  std::size_t seen = 0;
  std::size_t path_bytes = 0;
  while (!folders.empty()) {
    const std::string name = std::move(folders.back());
    folders.pop_back();
    const auto opened = open_beneath(git_folder, "", name, O_PATH | O_DIRECTORY);
    const auto entries = opened && *opened ? names_in((*opened)->get(), kMaxGitEntries - seen) : std::nullopt;
    if (!entries) {
      links.search = Search::CutShort;
      continue;
    }
    seen += entries->size();
    path_bytes += entries->size() * (name.size() + 1);
    if (path_bytes > kMaxSearchedPathBytes) {
      links.search = Search::CutShort;
      break;
    }
    const bool is_repository = looks_like_git_folder((*opened)->get());
    for (const std::string& entry : *entries) {
      struct stat status{};
      if (::fstatat((*opened)->get(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISLNK(status.st_mode)) links.names.push_back(joined(name, entry));
      if (!S_ISDIR(status.st_mode) || (is_repository && entry == "objects")) continue;
      folders.push_back(joined(name, entry));
    }
  }
  return links;
}

std::set<std::string> links_before(const WorkspaceGuard& guard) {
  const os::ActAs as_client(guard.client);
  std::set<std::string> paths;
  for (const GuardedFolder& folder : outermost(guard)) {
    for (const std::string& name : links_in(folder.fd.get()).names) paths.insert(joined(folder.path, name));
  }
  return paths;
}

std::vector<Finding> set_links_aside(const WorkspaceGuard& guard, const std::set<std::string>& before) {
  const os::ActAs as_client(guard.client);
  std::vector<Finding> findings;
  for (const GuardedFolder& folder : outermost(guard)) {
    const GitLinks links = links_in(folder.fd.get());
    for (const std::string& name : links.names) {
      const std::string path = joined(folder.path, name);
      if (before.contains(path)) continue;
      const auto aside = set_aside(folder, name);
      findings.push_back(
          {Finding::Consequence::Report,
           fmt::format("the sandbox made {} a symbolic link, and git would write through it outside. {}",
                       escaped(path),
                       aside ? "It was renamed to " + escaped(*aside)
                             : "It could not be renamed: remove it before you call git there")});
      if (findings.size() == kMaxLinksSetAside) {
        findings.push_back(
            {Finding::Consequence::Report, escaped(folder.path) + " has more links: " + kRemoveThem});
        return findings;
      }
    }
    if (links.search == Search::CutShort) {
      findings.push_back(
          {Finding::Consequence::Report,
           fmt::format("{} has more than {} entries, or folders that cannot be read, so not all were looked "
                       "at: {}",
                       escaped(folder.path), kMaxGitEntries, kRemoveThem)});
    }
  }
  return findings;
}

}  // namespace sallyport::sandbox
