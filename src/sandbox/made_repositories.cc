#include "sandbox/made_repositories.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "sandbox/git_question.h"

namespace sallyport::sandbox {
namespace {

// Submodules entered, of one top; where there are more, that is said.
constexpr std::size_t kMaxEntered = 256;
constexpr std::size_t kMaxNames = 4096;
constexpr std::size_t kMaxPointerBytes = 4096;
constexpr std::size_t kMaxConfigBytes = 1024 * 1024;
// `git ls-files` of a tree with half a million files.
constexpr std::size_t kMaxListBytes = 64 * 1024 * 1024;
constexpr std::string_view kGitlinkMode = "160000 ";

// What `git clone`, `git init` and `git submodule` write. Nothing here names a program or another file to
// read.
constexpr std::array<std::string_view, 13> kHarmless = {"core.repositoryformatversion",
                                                        "core.filemode",
                                                        "core.bare",
                                                        "core.logallrefupdates",
                                                        "core.ignorecase",
                                                        "core.symlinks",
                                                        "core.precomposeunicode",
                                                        "core.worktree",
                                                        "core.sparsecheckout",
                                                        "core.sparsecheckoutcone",
                                                        "extensions.objectformat",
                                                        "extensions.worktreeconfig",
                                                        "submodule.active"};

struct Family {
  std::string_view first;
  std::string_view last;
};
constexpr std::array<Family, 8> kHarmlessFamilies = {{{"remote.", ".url"},
                                                      {"remote.", ".fetch"},
                                                      {"branch.", ".remote"},
                                                      {"branch.", ".merge"},
                                                      {"submodule.", ".url"},
                                                      {"submodule.", ".active"},
                                                      {"user.", "name"},
                                                      {"user.", "email"}}};

bool is_harmless(const std::string& key) {
  if (std::ranges::find(kHarmless, key) != kHarmless.end()) return true;
  return std::ranges::any_of(kHarmlessFamilies, [&](const Family& family) {
    return key.starts_with(family.first) && key.ends_with(family.last);
  });
}

class Look {
 public:
  // `before` is nullptr at the start: then nothing is changed.
  Look(const WorkspaceGuard& guard, const ArmedBefore* before, const std::optional<os::Ids>& become)
      : guard_(guard), before_(before), become_(become) {}

  void at_top(const GuardedTop& top) {
    const GuardedFolder& folder = guard_.folders[top.folder];
    top_ = &folder;
    if (!id_at(folder.fd.get(), ".git")) return;
    if (!top.has_repository && !enter_or_answer("")) return;
    modules(".git/modules");
    submodules("");
  }

  std::vector<Finding> take() { return std::move(findings_); }
  ArmedBefore take_armed() { return std::move(armed_); }

 private:
  // Why git would run something of this repository's, or nullopt.
  std::optional<std::string> armed(int git_folder) {
    print_ = fingerprint(git_folder);
    if (id_at(git_folder, "commondir")) return "its commondir leads elsewhere";
    for (const char* name : {"config", "config.worktree"}) {
      if (!id_at(git_folder, name)) continue;
      auto file = open_beneath(git_folder, "", name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
      if (!file || !*file || !is_regular((*file)->get())) return fmt::format("its {} is no plain file", name);
      const auto settings = git_settings((*file)->get(), ".", become_);
      if (!settings) return fmt::format("its {} cannot be read", name);
      for (const auto& [key, value] : *settings) {
        if (!is_harmless(key)) return fmt::format("its {} sets {}", name, escaped(key));
      }
    }
    if (!id_at(git_folder, "hooks")) return std::nullopt;
    const auto hooks = open_beneath(git_folder, "", "hooks", O_PATH | O_DIRECTORY);
    if (!hooks || !*hooks) return "its hooks are no plain folder";
    for (const std::string& hook : names_in((*hooks)->get(), kMaxNames)) {
      if (!hook.ends_with(".sample")) return "it has the hook " + escaped(hook);
    }
    return std::nullopt;
  }

  bool is_guarded(const std::string& path) const {
    return std::ranges::find(guard_.git_folders, path) != guard_.git_folders.end();
  }

  // Of the .git in the tree: why git should not be let in, or nullopt.
  std::optional<std::string> why_not(const std::string& tree) {
    print_.clear();
    const std::string name = joined(tree, ".git");
    auto opened = open_beneath(top_->fd.get(), top_->path, name, O_PATH);
    if (!opened) return "it is, or is reached through, a link";
    if (!*opened) return std::nullopt;
    if (!is_folder((*opened)->get())) {
      const auto text = read_beneath(top_->fd.get(), name, kMaxPointerBytes);
      constexpr std::string_view kPrefix = "gitdir: ";
      if (!text || !text->starts_with(kPrefix)) return std::nullopt;  // git takes it for none
      std::string target = text->substr(kPrefix.size());
      while (target.ends_with('\n') || target.ends_with('\r')) target.pop_back();
      const std::string path =
          (std::filesystem::path(top_->path) / tree / target).lexically_normal().string();
      if (is_guarded(path)) return std::nullopt;
      print_ = path;
      const GuardedFolder* holder = top_of(path);
      if (holder == nullptr) return "it leads out of the workspace";
      opened =
          open_beneath(holder->fd.get(), holder->path,
                       path.substr(std::min(path.size(), holder->path.size() + 1)), O_PATH | O_DIRECTORY);
      if (!opened) return "it leads through a link";
      if (!*opened) return std::nullopt;
    }
    return armed((*opened)->get());
  }

  const GuardedFolder* top_of(const std::string& path) const {
    for (const GuardedTop& top : guard_.tops) {
      const GuardedFolder& folder = guard_.folders[top.folder];
      if (is_or_lies_in(path, folder.path)) return &folder;
    }
    return nullptr;
  }

  // False when git had better not be called there.
  bool enter_or_answer(const std::string& tree) {
    const auto why = why_not(tree);
    if (why) answer(joined(tree, ".git"), *why);
    return !why;
  }

  // Everything by which it could run something.
  static std::string fingerprint(int git_folder) {
    std::string text;
    for (const char* name : {"commondir", "config", "config.worktree"}) {
      text += read_beneath(git_folder, name, kMaxConfigBytes).value_or("none") + '\0';
    }
    const auto hooks = open_beneath(git_folder, "", "hooks", O_PATH | O_DIRECTORY);
    if (!hooks || !*hooks) return text;
    for (const std::string& name : names_in((*hooks)->get(), kMaxNames)) {
      struct stat status{};
      if (::fstatat((*hooks)->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      text +=
          fmt::format("{} {} {}.{}\n", name, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
    }
    return text;
  }

  void answer(const std::string& name, const std::string& why) {
    const std::string path = joined(top_->path, name);
    if (before_ == nullptr) {
      armed_.emplace(path, print_);
      return;
    }
    const auto known = before_->find(path);
    if (known != before_->end() && known->second == print_) return;
    std::string text =
        fmt::format("the sandbox made or changed {}, and {}: git would obey it outside", escaped(path), why);
    if (const auto aside = set_aside(*top_, name)) {
      text += ". It was renamed to " + escaped(*aside);
    } else {
      text += ". It could not be renamed: look at it before you call git there";
    }
    findings_.push_back({Finding::Consequence::Report, std::move(text)});
  }

  void modules(const std::string& name) {
    const auto opened = open_beneath(top_->fd.get(), top_->path, name, O_PATH | O_DIRECTORY);
    if (!opened || !*opened || entered_ >= kMaxEntered) return;
    const bool is_one = name != ".git/modules" && id_at((*opened)->get(), "HEAD").has_value();
    if (is_one) {
      ++entered_;
      if (!is_guarded(joined(top_->path, name))) {
        if (const auto why = armed((*opened)->get())) return answer(name, *why);
      }
      return modules(name + "/modules");
    }
    for (const std::string& entry : names_in((*opened)->get(), kMaxNames)) modules(joined(name, entry));
  }

  // What stands in the tree's index as a repository of its own, and so on below.
  void submodules(const std::string& tree) {
    for (const std::string& link : gitlinks(tree)) {
      const std::string inner = joined(tree, link);
      if (!id_at(top_->fd.get(), joined(inner, ".git"))) continue;
      if (++entered_ > kMaxEntered) {
        if (entered_ == kMaxEntered + 1) {
          findings_.push_back({Finding::Consequence::Report,
                               escaped(top_->path) + " has more submodules than are looked at"});
        }
        return;
      }
      if (enter_or_answer(inner)) submodules(inner);
    }
  }

  std::vector<std::string> gitlinks(const std::string& tree) {
    std::vector<std::string> links;
    const std::string path = joined(top_->path, tree);
    const auto list =
        ask_git({.arguments = {"-C", path, "-c", "core.fsmonitor=false", "-c", "safe.directory=*",
                               "--literal-pathspecs", "ls-files", "--stage", "-z"},
                 .environment = {"GIT_DIR=" + path + "/.git", "GIT_OPTIONAL_LOCKS=0"},
                 .descriptors = {},
                 .become = become_,
                 .max_answer_bytes = kMaxListBytes});
    if (!list || list->code != 0) return links;
    for (const std::string_view entry : split(list->text, '\0')) {
      const std::size_t tab = entry.find('\t');
      if (!entry.starts_with(kGitlinkMode) || tab == std::string_view::npos) continue;
      links.emplace_back(entry.substr(tab + 1));
    }
    return links;
  }

  const WorkspaceGuard& guard_;
  const ArmedBefore* before_;
  const std::optional<os::Ids>& become_;
  const GuardedFolder* top_ = nullptr;
  std::size_t entered_ = 0;
  std::string print_;  // of what was judged last
  std::vector<Finding> findings_;
  ArmedBefore armed_;
};

}  // namespace

ArmedBefore armed_repositories(const WorkspaceGuard& guard, const std::optional<os::Ids>& become) {
  Look look(guard, nullptr, become);
  for (const GuardedTop& top : guard.tops) {
    if (id_at(guard.folders[top.folder].fd.get(), ".gitmodules")) look.at_top(top);
  }
  return look.take_armed();
}

std::vector<Finding> set_armed_repositories_aside(const WorkspaceGuard& guard, const ArmedBefore& before,
                                                  const std::optional<os::Ids>& become) {
  Look look(guard, &before, become);
  for (const GuardedTop& top : guard.tops) look.at_top(top);
  return look.take();
}

}  // namespace sallyport::sandbox
