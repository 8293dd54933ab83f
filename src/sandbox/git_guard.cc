#include "sandbox/git_guard.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "sandbox/git_question.h"
#include "sandbox/normal_path.h"

namespace sallyport::sandbox {
namespace {

constexpr std::size_t kMaxConfigBytes = 1024 * 1024;
// Submodules within submodules, and folders in their names.
constexpr int kMaxModuleDepth = 16;
constexpr std::size_t kMaxModuleNames = 4096;
// Files that include files; git itself stops at 10.
constexpr int kMaxIncludeDepth = 10;

std::unexpected<Error> refuse(std::string detail) {
  return fail(Reason::BadRequest, std::move(detail));
}

// A path as it stands in configuration, made absolute.
std::string resolved(const std::string& value, const std::string& relative_to, const std::string& home) {
  if (value.starts_with("~/")) return normal_path(home + value.substr(1));
  return normal_path((std::filesystem::path(relative_to) / value).string());
}

// Where it is below the mount; nullopt: elsewhere, where the sandbox cannot write.
std::optional<std::string> below(const Mount& mount, const std::string& path) {
  if (!is_or_lies_in(path, mount.path)) return std::nullopt;
  return path.size() == mount.path.size() ? "" : path.substr(mount.path.size() + 1);
}

Status guard_named_paths(GuardBuilder& build, const Mount& mount, const std::string& config,
                         const std::string& tree, int depth);

Status guard_included(GuardBuilder& build, const Mount& mount, const std::string& config,
                      const std::string& path, const std::string& tree, int depth) {
  const auto name = below(mount, path);
  if (!name || name->empty()) return {};
  auto there = build.make_read_only(mount, *name);
  if (!there) return fail(std::move(there));
  if (!*there) {
    return refuse(
        fmt::format("{} includes {}, which is not there and which the sandbox could make; make it, or "
                    "remove the include",
                    escaped(joined(mount.path, config)), escaped(path)));
  }
  if (depth == kMaxIncludeDepth) return refuse(escaped(path) + " is included too deeply");
  return guard_named_paths(build, mount, *name, tree, depth + 1);
}

Status guard_hooks_path(GuardBuilder& build, const Mount& mount, const std::string& path) {
  const auto name = below(mount, path);
  if (!name) return {};
  if (name->empty())
    return refuse(escaped(path) + " is the folder of hooks (core.hooksPath), and cannot be guarded");
  auto there = build.make_read_only(mount, *name);
  if (!there) return fail(std::move(there));
  if (*there) {
    build.guard().notices.push_back(
        fmt::format("{} holds hooks (core.hooksPath), and is read-only inside", escaped(path)));
    return {};
  }
  auto top = build.folder(mount, "");
  if (!top) return fail(std::move(top));
  build.add_absent(*top, *name, AbsentPlace::Answer::SetAside);
  return {};
}

// What the configuration leads to and the sandbox could write: hooks elsewhere, and included files.
Status guard_named_paths(GuardBuilder& build, const Mount& mount, const std::string& config,
                         const std::string& tree, int depth) {
  const auto text = read_beneath(mount.source.get(), config, kMaxConfigBytes);
  if (!text) return {};
  // Most have neither, and need no git to be read.
  const std::string plain = lowered(*text);
  if (!plain.contains("include") && !plain.contains("hookspath")) return {};
  auto file = open_beneath(mount.source.get(), mount.path, config, O_RDONLY | O_NONBLOCK);
  if (!file) return fail(std::move(file));
  if (!*file) return {};
  const std::string path = joined(mount.path, config);
  auto settings = git_settings((*file)->get(), "^(core\\.hookspath|include\\.path|includeif\\..*\\.path)$",
                               build.input().become);
  if (!settings) return refuse(escaped(path) + ": " + settings.error().detail);
  const std::string folder = std::filesystem::path(path).parent_path().string();
  for (const auto& [key, value] : *settings) {
    const auto done =
        key == "core.hookspath"
            ? guard_hooks_path(build, mount, resolved(value, tree, build.input().home))
            : guard_included(build, mount, config, resolved(value, folder, build.input().home), tree, depth);
    if (!done) return done;
  }
  return {};
}

// Planted there it makes git take all configuration and hooks from where it leads; no main repository and no
// submodule has one.
Status refuse_commondir(GuardBuilder& build, std::size_t folder) {
  if (!id_at(build.fd(folder), "commondir")) {
    build.add_absent(folder, "commondir", AbsentPlace::Answer::SetAside);
    return {};
  }
  const std::string path = build.path(folder) + "/commondir";
  return refuse(
      fmt::format("{} leads git to another folder's configuration and hooks, and does not belong in a "
                  "repository: an earlier sandbox may have planted it. Call no git there before you have "
                  "looked at it and removed it",
                  escaped(path)));
}

Status guard_alternates(GuardBuilder& build, const Mount& mount, const std::string& name,
                        std::size_t folder) {
  const std::string alternates = "objects/info/alternates";
  auto there = open_beneath(mount.source.get(), mount.path, joined(name, alternates), O_PATH);
  // An objects folder that is a link: only data lies there.
  if (!there) return {};
  if (*there) {
    auto done = build.make_read_only(mount, joined(name, alternates));
    return done ? Status() : fail(std::move(done));
  }
  build.add_absent(folder, alternates, AbsentPlace::Answer::SetAside);
  // For the watch to hear of it. Where there is no such folder the look at the end finds one.
  (void)build.folder(mount, joined(name, "objects/info"));
  return {};
}

Status guard_worktree(GuardBuilder& build, const Mount& mount, const std::string& name) {
  if (const auto done = build.pin(mount, name); !done) return done;
  build.guard().fixed.back().gone = FixedPlace::Gone::Fine;  // `git worktree remove` outside
  for (const char* pointer : {"commondir", "gitdir"}) {
    auto done = build.make_read_only(mount, joined(name, pointer), FixedPlace::Gone::Fine);
    if (!done) return fail(std::move(done));
  }
  return build.make_read_only_or_hold(mount, joined(name, "config.worktree"), Placeholder::Kind::File,
                                      FixedPlace::Gone::Fine);
}

Status guard_worktrees(GuardBuilder& build, const Mount& mount, const std::string& name) {
  auto there = open_beneath(mount.source.get(), mount.path, name, O_PATH | O_DIRECTORY);
  if (!there) return fail(std::move(there));
  if (!*there) return {};
  if (const auto done = build.pin(mount, name); !done) return done;
  auto folder = build.folder(mount, name);
  if (!folder) return fail(std::move(folder));
  build.guard().worktrees.push_back({*folder});
  const auto entries = names_in((*there)->get(), kMaxWorktrees);
  if (!entries) {
    return refuse(
        fmt::format("{} cannot be read, or has more than {} linked worktrees to guard; "
                    "`git worktree prune` and `git worktree remove` make them fewer",
                    escaped(build.path(*folder)), kMaxWorktrees));
  }
  for (const std::string& entry : *entries) {
    const std::string path = joined(build.path(*folder), entry);
    if (!worktree_is_sound((*there)->get(), entry)) {
      return refuse(
          fmt::format("{} does not lead to its own repository: an earlier sandbox may have planted it. "
                      "Call no git there before you have looked at it and removed {}",
                      escaped(path + "/commondir"), escaped(path)));
    }
    if (!id_at((*there)->get(), entry + "/commondir")) continue;
    if (const auto done = guard_worktree(build, mount, joined(name, entry)); !done) return done;
  }
  return {};
}

Status guard_modules(GuardBuilder& build, const Mount& mount, const std::string& name, int depth) {
  auto there = open_beneath(mount.source.get(), mount.path, name, O_PATH | O_DIRECTORY);
  if (!there) return fail(std::move(there));
  if (!*there) return {};
  if (depth == kMaxModuleDepth) {
    return refuse(escaped(joined(mount.path, name)) + " holds submodules too deep to guard");
  }
  if (const auto done = build.pin(mount, name); !done) return done;
  const auto entries = names_in((*there)->get(), kMaxModuleNames);
  if (!entries) {
    return refuse(
        fmt::format("{} cannot be read, or holds more than {} names, too many submodules to guard; "
                    "look at it, and remove what belongs to none",
                    escaped(joined(mount.path, name)), kMaxModuleNames));
  }
  for (const std::string& entry : *entries) {
    const std::string inner = joined(name, entry);
    auto opened = open_beneath(mount.source.get(), mount.path, inner, O_PATH);
    if (!opened) return fail(std::move(opened));
    if (!*opened || !is_folder((*opened)->get())) continue;
    const bool is_one = id_at((*opened)->get(), "HEAD").has_value();
    const auto done = is_one ? guard_git_folder(build, mount, inner, joined(mount.path, inner))
                             : guard_modules(build, mount, inner, depth + 1);
    if (!done) return done;
  }
  return {};
}

}  // namespace

bool worktree_is_sound(int worktrees, const std::string& name) {
  if (!id_at(worktrees, name + "/commondir")) return true;  // git does not take it for one
  const auto text = read_beneath(worktrees, name + "/commondir", sizeof kWorktreeCommondir);
  return text && (text->empty() || *text == kWorktreeCommondir);
}

Status guard_git_folder(GuardBuilder& build, const Mount& mount, const std::string& name,
                        const std::string& tree) {
  if (const auto done = build.pin(mount, name); !done) return done;
  auto folder = build.folder(mount, name);
  if (!folder) return fail(std::move(folder));
  build.guard().git_folders.push_back(build.path(*folder));
  if (const auto done = refuse_commondir(build, *folder); !done) return done;

  using Kind = Placeholder::Kind;
  for (const auto& [entry, kind] : {std::pair{"config", Kind::File}, std::pair{"config.worktree", Kind::File},
                                    std::pair{"hooks", Kind::Folder}}) {
    if (const auto done = build.make_read_only_or_hold(mount, joined(name, entry), kind); !done) return done;
  }
  // Remotes of old: where to fetch from and push to, when the configuration does not say.
  for (const char* entry : {"branches", "remotes"}) {
    auto there = build.make_read_only(mount, joined(name, entry));
    if (!there) return fail(std::move(there));
    if (!*there) build.add_absent(*folder, entry, AbsentPlace::Answer::SetAside);
  }
  for (const char* config : {"config", "config.worktree"}) {
    if (const auto done = guard_named_paths(build, mount, joined(name, config), tree, 0); !done) return done;
  }
  if (const auto done = guard_alternates(build, mount, name, *folder); !done) return done;
  if (const auto done = guard_worktrees(build, mount, joined(name, "worktrees")); !done) return done;
  return guard_modules(build, mount, joined(name, "modules"), 0);
}

}  // namespace sallyport::sandbox
