#include "session/credentials.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <utility>

#include "os/safe_path.h"

namespace sallyport::session {
namespace {

// Whatever can change the file that a name leads to, or its bytes, owner or mode.
constexpr std::uint32_t kFolderEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB |
                                        IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

std::filesystem::path folder_of(const std::string& file) {
  return std::filesystem::path(file).parent_path();
}
std::string base_name(const std::string& file) {
  return std::filesystem::path(file).filename().string();
}

// Another one when the file is another, or was written to, given away or opened to others.
std::string print_of(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0) return "";
  return fmt::format("{} {} {} {} {}", status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

}  // namespace

Credentials::Credentials(os::FileWatcher& watcher, std::map<std::string, config::CredentialSource> sources,
                         uid_t owner, OnFile on_file)
    : sources_(std::move(sources)),
      owner_(owner),
      on_file_(std::move(on_file)),
      folders_(watcher, [this](const os::FileWatcher::Changes& changes) { on_changes(changes); }) {}

Status Credentials::watch() {
  for (const auto& [name, source] : sources_) {
    if (const auto id = folders_.add(folder_of(source.file).string(), kFolderEvents); !id) {
      return fail(Reason::CredentialUnavailable, fmt::format("credential '{}': {}", name, id.error().detail));
    }
  }
  return {};
}

void Credentials::open_all() {
  for (const auto& [name, source] : sources_) open_one(name, Handing::Always);
}

Status Credentials::check() const {
  for (const auto& [name, source] : sources_) {
    if (auto file = open(name); !file) return fail(std::move(file));
  }
  return {};
}

Result<Fd> Credentials::open(const std::string& name) const {
  auto file = os::open_private_file(sources_.at(name).file, owner_);
  if (file) return file;
  return fail(Reason::CredentialUnavailable, fmt::format("credential '{}': {}", name, file.error().detail));
}

void Credentials::open_one(const std::string& name, Handing handing) {
  auto file = open(name);
  const std::string problem = file ? "" : file.error().detail;
  const std::string print = file ? print_of(file->get()) : problem;
  const bool is_known = std::exchange(handed_[name], print) == print;
  if (is_known && handing == Handing::IfChanged) return;
  on_file_(name, file ? *std::move(file) : Fd(), problem);
}

void Credentials::on_changes(const os::FileWatcher::Changes& changes) {
  std::set<std::string> changed;
  bool folder_changed = false;
  for (const os::FileWatcher::Event& event : changes.events) {
    folder_changed |= event.name.empty();
    for (const auto& [name, source] : sources_) {
      if (base_name(source.file) == event.name) changed.insert(name);
    }
  }
  // A folder that is gone is told by its files, which cannot be opened.
  if (folder_changed || changes.lost) (void)watch();
  for (const auto& [name, source] : sources_) {
    if (folder_changed || changed.contains(name)) {
      open_one(name, Handing::Always);
    } else if (changes.lost) {
      // Any session may have caused that, and is not to have our files read again and again.
      open_one(name, Handing::IfChanged);
    }
  }
}

}  // namespace sallyport::session
