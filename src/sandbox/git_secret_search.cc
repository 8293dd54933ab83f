#include "sandbox/git_secret_search.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "sandbox/beneath.h"
#include "sandbox/search_budget.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;

enum class Content {
  Config,    // git's configuration syntax
  Lines,     // anything with URLs in it
  Log,       // reflogs, FETCH_HEAD
  Passwords  // bad by being there
};

bool exists(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

// A repository's own folder is known by these two, whatever its name.
bool is_git_folder(const std::string& folder) {
  return exists(folder + "/HEAD") && exists(folder + "/objects");
}

std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}
std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// A file below "logs" of a repository.
bool is_reflog(const std::string& path) {
  constexpr std::string_view kLogs = "/logs/";
  for (std::size_t at = path.find(kLogs); at != std::string::npos; at = path.find(kLogs, at + 1)) {
    if (is_git_folder(path.substr(0, at))) return true;
  }
  return false;
}

// By its name and what lies beside it. Of a repository's files only in a folder that ends in ".git" or lies
// in one: others are tracked files, made to look like one for a test.
std::optional<Content> content_of(const std::string& path) {
  const std::string_view name = name_of(path);
  const std::string folder(folder_of(path));
  if (name == ".git-credentials") return Content::Passwords;
  if (name == ".gitmodules" || name == ".lfsconfig" || name == ".gitconfig") {
    return exists(folder + "/.git") ? std::optional(Content::Config) : std::nullopt;
  }
  if (!path.contains(".git/")) return std::nullopt;
  if (name == "config.worktree") return Content::Config;
  if (name == "config" && is_git_folder(folder)) return Content::Config;
  if (name == "FETCH_HEAD" && exists(folder + "/HEAD")) return Content::Log;
  const std::string_view around = name_of(folder);
  const bool old_remote = around == "remotes" || around == "branches";
  if (old_remote && is_git_folder(std::string(folder_of(folder)))) return Content::Lines;
  return is_reflog(path) ? std::optional(Content::Log) : std::nullopt;
}

class Searching {
 public:
  Searching(std::span<const Mount> mounts, const std::string& home) : mounts_(mounts), home_(home) {}

  Result<GitSecretSearch> run() {
    for (const Mount& mount : mounts_) {
      struct stat status{};
      if (::fstat(mount.source.get(), &status) != 0) continue;
      if (!S_ISDIR(status.st_mode)) {
        if (auto done = read(mount.path); !done) return fail(std::move(done));
        continue;
      }
      // The repository at the top first, so that a large tree beside it cannot hide it.
      for (const char* folder : {"/.git", ""}) {
        if (auto done = walk(mount.path + folder); !done) return fail(std::move(done));
      }
    }
    return std::move(result_);
  }

 private:
  Status walk(const std::string& top) {
    std::error_code error;
    auto entry = fs::recursive_directory_iterator(top, fs::directory_options::skip_permission_denied, error);
    if (error) return {};
    SearchBudget budget;
    for (; entry != fs::end(entry); entry.increment(error)) {
      if (error || !budget.spend_on(entry->path().native())) {
        result_.search = Search::CutShort;
        return {};
      }
      std::error_code ignored;
      const fs::path& path = entry->path();
      if (fs::is_directory(entry->symlink_status(ignored))) {
        const bool objects = path.filename() == "objects" && exists(path.parent_path().string() + "/HEAD");
        if (objects) entry.disable_recursion_pending();
        continue;
      }
      if (auto done = read(path.string()); !done) return done;
    }
    if (error) result_.search = Search::CutShort;
    return {};
  }

  Status read(const std::string& path) {
    const auto content = content_of(path);
    return content ? read_as(*content, path, 0) : Status{};
  }

  Status read_as(Content content, const std::string& path, std::size_t depth) {
    if (files_.size() >= kMaxGitFiles) {
      result_.search = Search::CutShort;
      return {};
    }
    auto file = open_visible(path);
    if (!file) return {};
    if (content == Content::Passwords) {
      note(path, {"git's store of passwords", "move it out of the folder"});
      return {};
    }
    const std::size_t limit = content == Content::Config ? kMaxGitConfigBytes : kMaxGitLogBytes;
    struct stat status{};
    (void)::fstat(file->get(), &status);
    const bool whole = static_cast<std::size_t>(status.st_size) <= limit;
    if (!whole && content == Content::Config) {
      return fail(Reason::BadRequest,
                  fmt::format("{} is longer than {} bytes, so that it cannot be said whether "
                              "it holds a credential",
                              escaped(path), limit));
    }
    if (!whole) result_.search = Search::CutShort;
    auto text = read_up_to(file->get(), std::min(limit, static_cast<std::size_t>(status.st_size)));
    if (!text) return fail(Reason::BadRequest, escaped(path) + ": " + text.error().detail);
    if (content == Content::Config) return judge_config(path, *text, depth);
    judge_lines(content, path, *text);
    return {};
  }

  // Only what the sandbox sees too: a regular file of which the real path lies in a mount. Opened without
  // the right to read first, since what it is (a pipe, a device) is known only then.
  std::optional<Fd> open_visible(const std::string& path) {
    const Fd there(::open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status{};
    if (!there || ::fstat(there.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) {
      return std::nullopt;
    }
    const std::string link = fmt::format("/proc/self/fd/{}", there.get());
    std::error_code error;
    const std::string real = fs::read_symlink(link, error).string();
    if (error || !is_visible(real) || !files_.insert({status.st_dev, status.st_ino}).second)
      return std::nullopt;
    Fd file(::open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) return std::nullopt;  // nor can the sandbox read it, which has no more rights
    return file;
  }

  static Result<std::string> read_up_to(int fd, std::size_t limit) {
    std::string text(limit, '\0');
    std::size_t size = 0;
    while (size < limit) {
      const ssize_t got = ::read(fd, text.data() + size, limit - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail_errno(Reason::BadRequest, "read");
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    text.resize(size);
    return text;
  }

  Status judge_config(const std::string& path, const std::string& text, std::size_t depth) {
    auto entries = parse_git_config(text);
    if (!entries && !is_of_the_workspace(path)) {
      judge_lines(Content::Lines, path, text);
      return {};
    }
    if (!entries) {
      return fail(Reason::BadRequest,
                  fmt::format("{}: {} is nothing that git reads, so that it cannot be said "
                              "whether it holds a credential; mend the file, or remove it",
                              escaped(path), entries.error().detail));
    }
    std::set<std::size_t> lines;
    for (const GitConfigEntry& entry : *entries) {
      if (auto secret = secret_in(entry)) {
        lines.insert(entry.line);
        note(fmt::format("{}:{}", escaped(path), entry.line), std::move(*secret));
      } else if (const auto file = secret_file_of(entry); file && is_in_a_mount(*file, path)) {
        lines.insert(entry.line);
        note(fmt::format("{}:{}", escaped(path), entry.line),
             {escaped(entry.key()) + " names a file in a mount that holds a credential",
              "move that file out of the folder"});
      }
      const auto included = included_file_of(entry);
      if (!included || included->empty() || depth == kMaxIncludeDepth) continue;
      if (auto done = read_as(Content::Config, resolved(*included, path), depth + 1); !done) return done;
    }
    // What stands in comments and over several lines is read by the sandbox all the same.
    judge_lines(Content::Lines, path, text, lines);
    return {};
  }

  void judge_lines(Content content, const std::string& path, const std::string& text,
                   const std::set<std::size_t>& known = {}) {
    std::size_t number = 0;
    for (const std::string_view line : split(text, '\n')) {
      ++number;
      if (known.contains(number)) continue;
      auto secret = content == Content::Log ? secret_in_log_line(line) : secret_in_line(line);
      if (secret) note(fmt::format("{}:{}", escaped(path), number), std::move(*secret));
    }
  }

  // As git does: "~/" is the home, anything relative belongs to the file that says so.
  std::string resolved(const std::string& path, const std::string& from) const {
    if (path.starts_with("~/")) return home_ + path.substr(1);
    return (fs::path(from).parent_path() / path).lexically_normal().string();
  }

  // Relative to the file that names it, or to the work tree, which is where commands are mostly run.
  bool is_in_a_mount(const std::string& path, const std::string& from) const {
    const std::string folder(folder_of(from));
    return std::ranges::any_of(std::array{resolved(path, from), resolved(path, folder)},
                               [&](const std::string& candidate) {
                                 std::error_code error;
                                 return is_visible(fs::canonical(candidate, error).string()) && !error;
                               });
  }

  bool is_visible(const std::string& real) const {
    return std::ranges::any_of(mounts_, [&](const Mount& mount) { return is_or_lies_in(real, mount.path); });
  }

  // The repository at a mount's top, and what it tracks for git: git would not work there either.
  bool is_of_the_workspace(const std::string& path) const {
    return std::ranges::any_of(mounts_,
                               [&](const Mount& mount) { return path.starts_with(mount.path + "/.git"); });
  }

  void note(std::string place, GitSecret secret) {
    ++result_.total;
    if (result_.found.size() < kMaxSecretsShown)
      result_.found.push_back({std::move(place), std::move(secret)});
  }

  std::span<const Mount> mounts_;
  const std::string& home_;
  std::set<std::pair<dev_t, ino_t>> files_;  // read already
  GitSecretSearch result_;
};

}  // namespace

Result<GitSecretSearch> search_git_secrets(std::span<const Mount> mounts, const std::string& home) {
  return Searching(mounts, home).run();
}

std::string text_of(const GitSecretSearch& search) {
  std::string text =
      "git's configuration here holds credentials, which everything in the sandbox could read:\n";
  for (const FoundSecret& found : search.found) {
    text +=
        fmt::format("  {}: {}\n      to mend it: {}\n", found.place, found.secret.shown, found.secret.remedy);
  }
  if (search.total > search.found.size()) {
    text += fmt::format("  and {} more\n", search.total - search.found.size());
  }
  text +=
      "Nothing was started. A credential belongs in the operator's file (docs/policy.md), where no sandbox "
      "sees it. "
      "With --private-git the sandbox works on a clone of the repository that has none of its configuration.";
  return text;
}

}  // namespace sallyport::sandbox
