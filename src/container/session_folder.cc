#include "container/session_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "os/safe_path.h"

namespace sallyport::container {
namespace {

// Of the session's id, in the folder's name: the path of a socket has 108 bytes.
constexpr std::size_t kIdCharacters = 16;

Status write_file(const std::string& path, std::string_view content) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file) return fail_errno(Reason::Internal, "make " + path);
  if (::fchmod(file.get(), 0444) != 0) return fail_errno(Reason::Internal, "chmod " + path);
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail_errno(Reason::Internal, "write " + path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<SessionFolder> SessionFolder::make(const std::string& parent, const std::string& session) {
  if (auto made = os::make_private_folder(parent); !made) return fail(std::move(made));
  const std::string path = parent + "/" + session.substr(0, kIdCharacters);
  if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(Reason::Internal, "make " + path);
  return SessionFolder(path);
}

SessionFolder::~SessionFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Result<std::vector<PlacedFile>> SessionFolder::write(const std::vector<sandbox::GeneratedFile>& files) const {
  std::vector<PlacedFile> placed;
  std::map<std::string_view, std::string> written;  // the same content is one file
  for (const sandbox::GeneratedFile& file : files) {
    std::string& path = written[file.content];
    if (path.empty()) {
      path = fmt::format("{}/file-{}", path_, written.size());
      if (auto status = write_file(path, file.content); !status) return fail(std::move(status));
    }
    placed.push_back({.source = path, .target = file.path});
  }
  return placed;
}

}  // namespace sallyport::container
