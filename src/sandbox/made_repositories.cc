#include "sandbox/made_repositories.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/act_as.h"
#include "sandbox/git_links.h"
#include "sandbox/git_question.h"
#include "sandbox/normal_path.h"

namespace sallyport::sandbox {
namespace {

// Submodules entered, of one top; where there are more, that is said.
constexpr std::size_t kMaxEntered = 256;
// Folders below .git/modules looked at for repositories, of one top.
constexpr std::size_t kMaxModuleFolders = 1024;
// Of all tops together.
constexpr std::chrono::seconds kLookTimeout{5};
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
    entered_ = 0;
    module_folders_ = 0;
    said_too_much_ = false;
    if (!id_at(folder.fd.get(), ".git")) {
      if (!top.has_repository) top_itself();
      return;
    }
    if (!top.has_repository && !enter_or_answer("")) return;
    modules(".git/modules");
    submodules("");
  }

  std::vector<Finding> take() { return std::move(findings_); }
  ArmedBefore take_armed() { return std::move(armed_); }

 private:
  // A folder without .git is a repository by HEAD, objects and refs in it.
  void top_itself() {
    if (!looks_like_git_folder(top_->fd.get())) return;
    if (const auto why = armed(top_->fd.get(), top_->path)) {
      answer("HEAD", "with objects and refs beside it, the folder is a repository; " + *why);
    }
  }

  // Why git would run something of this repository's, or write elsewhere, or nullopt.
  std::optional<std::string> armed(int git_folder, const std::string& path) {
    const GitLinks links = links_in(git_folder);
    print_ = fingerprint(git_folder);
    if (links.search == Search::CutShort) print_.reset();
    for (const std::string& link : links.names) {
      if (print_) *print_ += link + '\0';
    }
    if (id_at(git_folder, "commondir")) return "its commondir leads elsewhere";
    for (const char* name : {"config", "config.worktree"}) {
      if (!id_at(git_folder, name)) continue;
      auto file = open_beneath(git_folder, "", name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
      if (!file || !*file || !is_regular((*file)->get())) return fmt::format("its {} is no plain file", name);
      const auto settings = git_settings((*file)->get(), ".", become_);
      if (!settings) return fmt::format("its {} cannot be read", name);
      for (const auto& [key, value] : *settings) {
        if (!is_harmless(key)) return fmt::format("its {} sets {}", name, escaped(key));
        if (key == "core.worktree" && !is_inside(normal_path(std::filesystem::path(path) / value))) {
          return fmt::format("its {} leads git to write in {}", name, escaped(value));
        }
      }
    }
    if (!links.names.empty()) {
      return fmt::format("git would write elsewhere through its link {}", escaped(links.names.front()));
    }
    if (links.search == Search::CutShort) return "it cannot be read to its end";
    if (!id_at(git_folder, "hooks")) return std::nullopt;
    const auto hooks = open_beneath(git_folder, "", "hooks", O_PATH | O_DIRECTORY);
    if (!hooks || !*hooks) return "its hooks are no plain folder";
    const auto names = names_in((*hooks)->get(), kMaxNames);
    if (!names) return "its hooks cannot be read, or are too many";
    for (const std::string& hook : *names) {
      if (!hook.ends_with(".sample")) return "it has the hook " + escaped(hook);
    }
    return std::nullopt;
  }

  // Whether that is in one of the tops, and through no link.
  bool is_inside(const std::string& path) const {
    const GuardedFolder* holder = top_of(path);
    return holder != nullptr && open_beneath(holder->fd.get(), holder->path, below(*holder, path), O_PATH);
  }

  static std::string below(const GuardedFolder& holder, const std::string& path) {
    return path.substr(std::min(path.size(), holder.path.size() + 1));
  }

  bool is_guarded(const std::string& path) const {
    return std::ranges::find(guard_.git_folders, path) != guard_.git_folders.end();
  }

  // Of the .git in the tree: why git should not be let in, or nullopt.
  std::optional<std::string> why_not(const std::string& tree) {
    print_.reset();
    const std::string name = joined(tree, ".git");
    std::string path = joined(top_->path, name);
    auto opened = open_beneath(top_->fd.get(), top_->path, name, O_PATH);
    if (!opened) return "it is, or is reached through, a link";
    if (!*opened) return std::nullopt;
    if (!is_folder((*opened)->get())) {
      const auto text = read_beneath(top_->fd.get(), name, kMaxPointerBytes);
      constexpr std::string_view kPrefix = "gitdir: ";
      if (!text || !text->starts_with(kPrefix)) return std::nullopt;  // git takes it for none
      std::string target = text->substr(kPrefix.size());
      while (target.ends_with('\n') || target.ends_with('\r')) target.pop_back();
      path = normal_path(std::filesystem::path(top_->path) / tree / target);
      if (is_guarded(path)) return std::nullopt;
      print_ = path;
      const GuardedFolder* holder = top_of(path);
      if (holder == nullptr) return "it leads out of the workspace";
      opened = open_beneath(holder->fd.get(), holder->path, below(*holder, path), O_PATH | O_DIRECTORY);
      if (!opened) return "it leads through a link";
      if (!*opened) return std::nullopt;
    }
    return armed((*opened)->get(), path);
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

  // Everything by which it could run something; nullopt when it cannot be told whether it changes.
  static std::optional<std::string> fingerprint(int git_folder) {
    std::string text;
    for (const char* name : {"commondir", "config", "config.worktree"}) {
      if (!id_at(git_folder, name)) {
        text += "-";
        continue;
      }
      const auto content = read_beneath(git_folder, name, kMaxConfigBytes);
      if (!content) return std::nullopt;
      text += '+' + *content + '\0';
    }
    const auto hooks = open_beneath(git_folder, "", "hooks", O_PATH | O_DIRECTORY);
    if (!hooks || !*hooks) return text;
    const auto names = names_in((*hooks)->get(), kMaxNames);
    if (!names) return std::nullopt;
    for (const std::string& name : *names) {
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
      if (print_) armed_.emplace(path, *print_);
      return;
    }
    const auto known = before_->find(path);
    if (known != before_->end() && print_ == known->second) return;
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
    if (is_too_much()) return;
    const auto opened = open_beneath(top_->fd.get(), top_->path, name, O_PATH);
    if (!opened) {
      print_.reset();
      return answer(name, "it is, or is reached through, a link, or is too deep");
    }
    if (!*opened || !is_folder((*opened)->get())) return;
    ++module_folders_;
    const bool is_one = name != ".git/modules" && id_at((*opened)->get(), "HEAD").has_value();
    if (is_one) {
      ++entered_;
      if (!is_guarded(joined(top_->path, name))) {
        if (const auto why = armed((*opened)->get(), joined(top_->path, name))) return answer(name, *why);
      }
      return modules(name + "/modules");
    }
    const auto entries = names_in((*opened)->get(), kMaxNames);
    if (!entries) return tell_unseen(joined(top_->path, name) + " cannot be read, or holds too many names");
    for (const std::string& entry : *entries) modules(joined(name, entry));
  }

  // What is not looked at is told, or hostile things would hide behind the limits.
  void tell_unseen(const std::string& what) {
    if (before_ == nullptr) return;
    findings_.push_back({Finding::Consequence::Report,
                         escaped(what) +
                             ", so what the sandbox may have put there was not seen: call no git in " +
                             escaped(top_->path) +
                             " before you have looked for repositories there that you do "
                             "not know, and removed them"});
  }

  bool is_too_much() {
    const bool is_late = std::chrono::steady_clock::now() > end_;
    if (!is_late && entered_ < kMaxEntered && module_folders_ < kMaxModuleFolders) return false;
    if (!std::exchange(said_too_much_, true)) {
      tell_unseen(top_->path + (is_late ? " has submodules that take too long to look at"
                                        : " has more submodules than are looked at"));
    }
    return true;
  }

  // What stands in the tree's index as a repository of its own, and so on below.
  void submodules(const std::string& tree) {
    if (is_too_much()) return;
    const auto links = gitlinks(tree);
    if (!links) {
      return tell_unseen("git cannot list the submodules of " + joined(top_->path, tree) +
                         ", or not within the limits");
    }
    for (const std::string& link : *links) {
      const std::string inner = joined(tree, link);
      if (!id_at(top_->fd.get(), joined(inner, ".git"))) continue;
      if (is_too_much()) return;
      ++entered_;
      if (enter_or_answer(inner)) submodules(inner);
    }
  }

  // nullopt when git does not say.
  std::optional<std::vector<std::string>> gitlinks(const std::string& tree) {
    std::vector<std::string> links;
    const std::string path = joined(top_->path, tree);
    // Of what is no file git would wait to read: for a writer, say.
    const auto index = open_beneath(top_->fd.get(), top_->path, joined(tree, ".git/index"), O_PATH);
    if (index && *index && !is_regular((*index)->get())) return std::nullopt;
    const auto list = ask_git(
        {.arguments = {"-C", path, "-c", "core.fsmonitor=false", "-c", "safe.directory=*",
                       "--literal-pathspecs", "ls-files", "--stage", "-z"},
         .environment = {"GIT_DIR=" + path + "/.git", "GIT_OPTIONAL_LOCKS=0"},
         .descriptors = {},
         .become = become_,
         .max_answer_bytes = kMaxListBytes,
         .timeout = std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now())});
    if (!list || list->code != 0) return std::nullopt;
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
  const std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kLookTimeout;
  // Of the top that is looked at.
  std::size_t entered_ = 0;
  std::size_t module_folders_ = 0;
  bool said_too_much_ = false;
  std::optional<std::string> print_;  // of what was judged last
  std::vector<Finding> findings_;
  ArmedBefore armed_;
};

}  // namespace

ArmedBefore armed_repositories(const WorkspaceGuard& guard, const std::optional<os::Ids>& become) {
  const os::ActAs as_client(guard.client);
  Look look(guard, nullptr, become);
  for (const GuardedTop& top : guard.tops) {
    if (id_at(guard.folders[top.folder].fd.get(), ".gitmodules")) look.at_top(top);
  }
  return look.take_armed();
}

std::vector<Finding> set_armed_repositories_aside(const WorkspaceGuard& guard, const ArmedBefore& before,
                                                  const std::optional<os::Ids>& become) {
  const os::ActAs as_client(guard.client);
  Look look(guard, &before, become);
  for (const GuardedTop& top : guard.tops) look.at_top(top);
  return look.take();
}

}  // namespace sallyport::sandbox
