#include "sandbox/guard_builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

std::string parent_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

std::string last_part(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

}  // namespace

Status GuardBuilder::add_mount(Fd source, std::string path, Access access) {
  if (!mounted_.insert(path).second) return {};
  if (guard_.mounts.size() == kMaxMounts) {
    return fail(Reason::BadRequest,
                fmt::format("{} has more than {} places to guard (submodules, linked worktrees); start in a "
                            "folder with fewer repositories",
                            escaped(path), kMaxMounts));
  }
  struct stat status{};
  if (::fstat(source.get(), &status) != 0) return fail_errno(Reason::BadRequest, "stat " + escaped(path));
  Mount mount;
  mount.source = std::move(source);
  mount.path = std::move(path);
  mount.access = access;
  mount.device = status.st_dev;
  mount.inode = status.st_ino;
  mount.owner = status.st_uid;
  guard_.mounts.push_back(std::move(mount));
  return {};
}

Result<std::size_t> GuardBuilder::folder(const Mount& mount, const std::string& name) {
  const std::string path = joined(mount.path, name);
  if (const auto known = folders_.find(path); known != folders_.end()) return known->second;
  auto opened = open_beneath(mount.source.get(), mount.path, name, O_PATH | O_DIRECTORY);
  if (!opened) return fail(std::move(opened));
  if (!*opened) return fail(Reason::BadRequest, escaped(path) + " is no folder");
  guard_.folders.push_back({std::move(**opened), path});
  return folders_[path] = guard_.folders.size() - 1;
}

Status GuardBuilder::pin(const Mount& mount, const std::string& name) {
  if (name.empty()) return {};
  if (const auto done = pin_parents(mount, name); !done) return done;
  const std::string path = joined(mount.path, name);
  if (mounted_.contains(path)) return {};
  auto opened = open_beneath(mount.source.get(), mount.path, name, O_PATH);
  if (!opened) return fail(std::move(opened));
  if (!*opened) return fail(Reason::BadRequest, escaped(path) + " went away");
  if (const auto done = add_mount(std::move(**opened), path, Access::ReadWrite); !done) return done;
  return add_fixed(mount, name, FixedPlace::Gone::FellOff);
}

Status GuardBuilder::pin_parents(const Mount& mount, const std::string& name) {
  return pin(mount, parent_of(name));
}

Result<bool> GuardBuilder::make_read_only(const Mount& mount, const std::string& name,
                                          FixedPlace::Gone gone) {
  auto opened = open_beneath(mount.source.get(), mount.path, name, O_PATH);
  if (!opened) return fail(std::move(opened));
  if (!*opened) return false;
  if (const auto done = pin_parents(mount, name); !done) return fail(Result<void>(done));
  if (const auto done = add_mount(std::move(**opened), joined(mount.path, name), Access::ReadOnly); !done) {
    return fail(Result<void>(done));
  }
  if (const auto done = add_fixed(mount, name, gone); !done) return fail(Result<void>(done));
  return true;
}

Status GuardBuilder::make_read_only_or_hold(const Mount& mount, const std::string& name,
                                            Placeholder::Kind kind, FixedPlace::Gone gone) {
  auto parent = folder(mount, parent_of(name));
  if (!parent) return fail(std::move(parent));
  if (auto placeholder = Placeholder::make(fd(*parent), last_part(name), kind, input_.client)) {
    guard_.was_left_behind |= placeholder->was_left_behind();
    guard_.placeholders.push_back(std::move(*placeholder));
  }
  auto protected_now = make_read_only(mount, name, gone);
  if (!protected_now) return fail(std::move(protected_now));
  if (!*protected_now) add_absent(*parent, last_part(name), AbsentPlace::Answer::SetAside);
  return {};
}

Status GuardBuilder::add_fixed(const Mount& mount, const std::string& name, FixedPlace::Gone gone) {
  auto parent = folder(mount, parent_of(name));
  if (!parent) return fail(std::move(parent));
  const auto id = id_at(fd(*parent), last_part(name));
  if (!id) return fail(Reason::BadRequest, escaped(joined(mount.path, name)) + " went away");
  guard_.fixed.push_back({*parent, last_part(name), *id, gone});
  return {};
}

void GuardBuilder::add_absent(std::size_t folder, std::string name, AbsentPlace::Answer answer) {
  guard_.absent.push_back({folder, std::move(name), answer});
}

}  // namespace sallyport::sandbox
