#include "session/credentials.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <set>

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

}  // namespace

Credentials::Credentials(os::EventLoop& loop, std::map<std::string, config::CredentialSource> sources,
                         uid_t owner, OnFile on_file)
    : loop_(loop), sources_(std::move(sources)), owner_(owner), on_file_(std::move(on_file)) {}

Credentials::~Credentials() {
  if (inotify_) loop_.unwatch(inotify_.get());
}

Status Credentials::watch() {
  inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify_) return fail_errno(Reason::Internal, "inotify_init1");
  if (auto status = watch_folders(); !status) return status;
  loop_.watch(inotify_.get(), POLLIN, [this](short) { on_folder_event(); });
  return {};
}

// Again and again: a folder that is watched already stays so, and one that took its place is watched from now
// on.
Status Credentials::watch_folders() {
  for (const auto& [name, source] : sources_) {
    const std::string folder = folder_of(source.file).string();
    if (::inotify_add_watch(inotify_.get(), folder.c_str(), kFolderEvents) < 0) {
      return fail_errno(Reason::CredentialUnavailable,
                        fmt::format("credential '{}': watching the folder {}", name, folder));
    }
  }
  return {};
}

void Credentials::open_all() {
  for (const auto& [name, source] : sources_) open_one(name);
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

void Credentials::open_one(const std::string& name) {
  auto file = open(name);
  if (file) return on_file_(name, std::move(*file), "");
  on_file_(name, Fd(), file.error().detail);
}

void Credentials::on_folder_event() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  std::set<std::string> changed;
  bool folder_changed = false;
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* file_name = buffer.data() + at + sizeof event;
      // Without a name the folder itself changed, or events were lost: every file may have.
      if (event.len == 0) folder_changed = true;
      for (const auto& [name, source] : sources_) {
        if (event.len == 0 || base_name(source.file) == file_name) changed.insert(name);
      }
      at += sizeof event + event.len;
    }
  }
  // A folder that is gone is told by its files, which cannot be opened.
  if (folder_changed) (void)watch_folders();
  for (const std::string& name : changed) open_one(name);
}

}  // namespace sallyport::session
