#include "sandbox/workspace_guard.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "sandbox/git_guard.h"
#include "sandbox/git_question.h"
#include "sandbox/guard_builder.h"
#include "sandbox/normal_path.h"
#include "sandbox/socket_search.h"

namespace sallyport::sandbox {
namespace {

// Of a .git file, or of one of the pointers in a linked worktree's folder.
constexpr std::size_t kMaxPointerBytes = 4096;

std::string without_line_ends(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

// Where a .git file leads, absolute; nullopt when git would not take it for one.
std::optional<std::string> pointed_at(const Mount& mount) {
  const auto text = read_beneath(mount.source.get(), ".git", kMaxPointerBytes);
  constexpr std::string_view kPrefix = "gitdir: ";
  if (!text || !text->starts_with(kPrefix)) return std::nullopt;
  const std::string target = without_line_ends(text->substr(kPrefix.size()));
  if (target.empty() || target.contains('\0')) return std::nullopt;
  std::error_code error;
  const auto path = std::filesystem::canonical(std::filesystem::path(mount.path) / target, error);
  if (error) return std::nullopt;
  return path.string();
}

std::optional<std::string> read_pointer(int folder, const std::string& name) {
  auto text = read_beneath(folder, name, kMaxPointerBytes);
  if (!text) return std::nullopt;
  return without_line_ends(std::move(*text));
}

// The folder of the repository to which `git_folder` belongs, when it says that it is the worktree's or the
// submodule's at `tree`.
std::optional<std::string> repository_of(const std::string& git_folder, const std::string& tree,
                                         const std::optional<os::Ids>& become) {
  const Fd folder(::open(git_folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return std::nullopt;
  if (const auto back = read_pointer(folder.get(), "gitdir")) {
    const auto common = read_pointer(folder.get(), "commondir");
    if (!common || normal_path(*back) != tree + "/.git") return std::nullopt;
    const std::string repository = normal_path(std::filesystem::path(git_folder) / *common);
    // Exactly where git puts a worktree's folder, or a planted one could name any repository.
    const bool is_its =
        normal_path(std::filesystem::path(git_folder).parent_path()) == repository + "/worktrees";
    return is_its ? std::optional(repository) : std::nullopt;
  }
  auto config = open_beneath(folder.get(), git_folder, "config", O_RDONLY | O_NONBLOCK);
  if (!config || !*config || !is_regular((*config)->get())) return std::nullopt;
  const auto settings = git_settings((*config)->get(), "^core\\.worktree$", become);
  if (!settings || settings->empty()) return std::nullopt;
  const std::string back = normal_path(std::filesystem::path(git_folder) / settings->back().second);
  return back == tree ? std::optional(git_folder) : std::nullopt;
}

const Mount* writable_mount_of(std::span<const Mount> mounts, const std::string& path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    const bool holds =
        mount.access == Access::ReadWrite && is_folder(mount.source.get()) && is_or_lies_in(path, mount.path);
    if (holds && (best == nullptr || best->path.size() < mount.path.size())) best = &mount;
  }
  return best;
}

std::string below(const Mount& mount, const std::string& path) {
  return path.size() == mount.path.size() ? "" : path.substr(mount.path.size() + 1);
}

// A .git file: read-only, and what it leads to is guarded where it lies in one of the mounts.
Status guard_pointer(GuardBuilder& build, std::span<const Mount> mounts, const Mount& mount) {
  auto done = build.make_read_only(mount, ".git");
  if (!done) return fail(std::move(done));
  const auto target = pointed_at(mount);
  if (!target) {
    build.guard().notices.push_back(escaped(mount.path) +
                                    "/.git leads nowhere, so git does not work in there");
    return {};
  }
  const Mount* holder = writable_mount_of(mounts, *target);
  const std::string name = holder != nullptr ? below(*holder, *target) : "";
  // A linked worktree's folder is guarded with its repository, which is a mount of its own or at a top.
  if (name.empty() || ("/" + name).contains("/worktrees/")) return {};
  return guard_git_folder(build, *holder, name, mount.path);
}

Status guard_top(GuardBuilder& build, std::span<const Mount> mounts, const Mount& mount) {
  auto top = build.folder(mount, "");
  if (!top) return fail(std::move(top));
  auto git = open_beneath(mount.source.get(), mount.path, ".git", O_PATH);
  if (!git) return fail(std::move(git));
  const bool is_bare = looks_like_git_folder(mount.source.get());
  build.guard().tops.push_back({*top, *git || is_bare});
  if (*git && is_bare) {
    return fail(
        Reason::BadRequest,
        fmt::format("{} holds .git and is itself a repository (HEAD, objects, refs), which git uses when "
                    ".git is damaged: an earlier sandbox may have planted it. Look at it, and remove {}/HEAD",
                    escaped(mount.path), escaped(mount.path)));
  }
  if (!*git && is_bare) return guard_git_folder(build, mount, "", mount.path);
  if (!*git) return {};
  if (is_folder((*git)->get())) return guard_git_folder(build, mount, ".git", mount.path);
  return guard_pointer(build, mounts, mount);
}

// A read-only mount in a writable one (the policy, --mount PATH:ro): its parents could be renamed.
Status hold_in_place(GuardBuilder& build, std::span<const Mount> mounts, const Mount& mount) {
  const std::string parent = std::filesystem::path(mount.path).parent_path().string();
  const Mount* holder = writable_mount_of(mounts, parent);
  if (holder == nullptr) return {};
  const std::string name = below(*holder, mount.path);
  if (const auto done = build.pin_parents(*holder, name); !done) return done;
  return build.add_fixed(*holder, name, FixedPlace::Gone::FellOff);
}

// A sandbox could write the policy of the next run.
Status watch_for_policy(GuardBuilder& build, std::span<const Mount> mounts) {
  const std::filesystem::path policy = build.input().policy_path;
  std::error_code error;
  const std::string folder = std::filesystem::canonical(policy.parent_path(), error).string();
  if (error) return {};
  const Mount* holder = writable_mount_of(mounts, folder);
  if (holder == nullptr) return {};
  auto opened = build.folder(*holder, below(*holder, folder));
  if (!opened) return fail(std::move(opened));
  const std::string name = policy.filename().string();
  if (!id_at(build.fd(*opened), name)) build.add_absent(*opened, name, AbsentPlace::Answer::Report);
  return {};
}

}  // namespace

Result<WorkspaceGuard> guard_workspace(std::span<const Mount> mounts, const GuardInput& input) {
  GuardBuilder build(input);
  build.guard().client = input.client;
  for (const Mount& mount : mounts) {
    const bool folder = is_folder(mount.source.get());
    Status done;
    if (mount.access == Access::ReadOnly) done = hold_in_place(build, mounts, mount);
    if (done && folder && mount.access == Access::ReadWrite) done = guard_top(build, mounts, mount);
    if (!done) return fail(std::move(done));
  }
  if (!input.policy_path.empty()) {
    if (const auto done = watch_for_policy(build, mounts); !done) return fail(Result<void>(done));
  }
  for (const Mount& mount : mounts) {
    if (!is_folder(mount.source.get())) continue;
    if (const auto done = hide_sockets(mount, build.guard()); !done) return fail(Result<void>(done));
  }
  return std::move(build.guard());
}

Result<std::vector<MountRequest>> linked_repositories(std::span<const Mount> mounts,
                                                      const std::optional<os::Ids>& become) {
  std::vector<MountRequest> requests;
  for (const Mount& mount : mounts) {
    if (mount.access == Access::ReadOnly || !is_folder(mount.source.get())) continue;
    const auto target = pointed_at(mount);
    if (!target || writable_mount_of(mounts, *target) != nullptr) continue;
    const auto repository = repository_of(*target, mount.path, become);
    if (!repository) {
      return fail(
          Reason::BadRequest,
          fmt::format("{0}/.git leads to {1}, which does not say that it belongs to {0}: an earlier "
                      "sandbox may have written that file. If it is right, give the repository yourself: "
                      "--mount {1}",
                      escaped(mount.path), escaped(*target)));
    }
    const auto same = [&](const MountRequest& request) { return request.path == *repository; };
    if (std::ranges::none_of(requests, same)) requests.push_back({*repository, Access::ReadWrite});
  }
  return requests;
}

}  // namespace sallyport::sandbox
