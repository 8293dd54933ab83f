#include "os/socket_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "base/text.h"

namespace sallyport::os {
namespace {

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

std::unexpected<Error> refuse(std::string sentence) {
  return fail(Reason::Internal, std::move(sentence));
}

Result<std::vector<std::string>> components(const std::string& path) {
  const std::string shown = escaped(path);
  if (path.size() > kMaxSocketPathBytes) {
    return refuse(fmt::format("the socket's path {} has more than {} bytes: name a shorter one", shown,
                              kMaxSocketPathBytes));
  }
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    return refuse(fmt::format("the socket's path \"{}\" is not absolute", shown));
  }
  std::vector<std::string> names;
  for (const std::string_view name : split(std::string_view(path).substr(1), '/')) {
    if (name.empty() || name == "." || name == "..") {
      return refuse(
          fmt::format("the socket's path {} is not plain: name it without \"//\", \".\" and \"..\"", shown));
    }
    names.emplace_back(name);
  }
  if (names.size() < 2) return refuse(fmt::format("the socket {} needs a folder of its own", shown));
  return names;
}

enum class Role { Above, Last };

Status check_folder(const struct stat& facts, const std::string& path, uid_t trusted, Role role) {
  if (facts.st_uid != 0 && facts.st_uid != trusted) {
    return refuse(
        fmt::format("{} belongs to uid {}, neither to root nor to uid {}", path, facts.st_uid, trusted));
  }
  const bool sticky = role == Role::Above && (facts.st_mode & S_ISVTX) != 0;
  if ((facts.st_mode & kWritableByOthers) != 0 && !sticky) {
    return refuse(fmt::format("{} can be written by group or others: chmod go-w {}, or name another place",
                              path, path));
  }
  return {};
}

std::unexpected<Error> cannot_open(const std::string& path) {
  switch (errno) {
    case ELOOP:
    case ENOTDIR:
      return refuse(path + " is a symbolic link or no folder: name the folder itself");
    case ENOENT:
      return fail(Reason::UpstreamUnreachable, path + " is not there");
    default:
      return fail_errno(Reason::Internal, "open " + path);
  }
}

}  // namespace

std::string SocketPlace::by_descriptor() const {
  return fmt::format("/proc/self/fd/{}/{}", folder.get(), name);
}

Result<SocketPlace> open_socket_place(const std::string& path, uid_t trusted, MissingFolder missing) {
  auto names = components(path);
  if (!names) return fail(std::move(names));
  // With O_PATH, O_NOFOLLOW opens a link itself; O_DIRECTORY then refuses it (ENOTDIR).
  constexpr int kStep = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd at(::open("/", kStep));
  std::string shown;
  struct stat facts{};
  for (std::size_t i = 0; i + 1 < names->size(); ++i) {
    const std::string& name = (*names)[i];
    const bool last = i + 2 == names->size();
    shown += "/" + name;
    if (last && missing == MissingFolder::Make && ::mkdirat(at.get(), name.c_str(), 0700) != 0 &&
        errno != EEXIST) {
      return fail_errno(Reason::Internal, "make " + shown);
    }
    Fd next(::openat(at.get(), name.c_str(), kStep));
    if (!next) return cannot_open(shown);
    if (::fstat(next.get(), &facts) != 0) return fail_errno(Reason::Internal, "stat " + shown);
    const Role role = i + 3 >= names->size() ? Role::Last : Role::Above;
    if (auto ok = check_folder(facts, shown, trusted, role); !ok) return fail(std::move(ok));
    at = std::move(next);
  }
  return SocketPlace{std::move(at), names->back(), path, facts.st_uid, facts.st_mode};
}

}  // namespace sallyport::os
