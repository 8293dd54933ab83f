#include "config/trust_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "config/config.h"
#include "os/act_as.h"
#include "os/safe_path.h"

namespace sallyport::config {
namespace {

// An entry: this line, then "path N", the path, "text N", and the text.
constexpr std::string_view kMagic = "sallyport trust 1";
constexpr std::size_t kMaxEntryBytes = kMaxPolicyBytes + PATH_MAX + 256;
constexpr std::size_t kNameBytes = std::size_t{SHA256_DIGEST_LENGTH} * 2;
// Behind the name of an entry that is not written to its end yet.
constexpr char kUnfinished[] = ".new";

std::string name_of(const std::string& path) {
  return sha256_hex(path);
}

bool is_entry_name(std::string_view name) {
  return name.size() == kNameBytes && std::ranges::all_of(name, is_hex);
}

std::string encode(const std::string& path, std::string_view text) {
  return fmt::format("{}\nsha256 {}\npath {}\n{}\ntext {}\n{}", kMagic, sha256_hex(text), path.size(), path,
                     text.size(), text);
}

// Takes "KEY VALUE\n" off the front of `rest`.
std::optional<std::string_view> take_line(std::string_view& rest, std::string_view key) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos || !rest.starts_with(key)) return std::nullopt;
  const std::string_view value = rest.substr(key.size(), end - key.size());
  rest.remove_prefix(end + 1);
  return value;
}

// Takes "KEY N\n" and the N bytes behind it.
std::optional<std::string> take_bytes(std::string_view& rest, std::string_view key) {
  const auto line = take_line(rest, key);
  const auto size = line ? parse_decimal(*line, kMaxEntryBytes) : std::nullopt;
  if (!size || *size > rest.size()) return std::nullopt;
  std::string bytes(rest.substr(0, *size));
  rest.remove_prefix(*size);
  return bytes;
}

std::optional<Trusted> decode(std::string_view bytes, std::string_view name) {
  std::string_view rest = bytes;
  if (take_line(rest, kMagic) != "") return std::nullopt;
  const auto sha256 = take_line(rest, "sha256 ");
  auto path = take_bytes(rest, "path ");
  if (!sha256 || !path || take_line(rest, "") != "") return std::nullopt;
  auto text = take_bytes(rest, "text ");
  if (!text || !rest.empty()) return std::nullopt;
  if (sha256_hex(*text) != *sha256 || name_of(*path) != name) return std::nullopt;
  return Trusted{*std::move(path), std::string(*sha256), *std::move(text)};
}

bool exists(int folder, const std::string& name) {
  struct stat facts{};
  return ::fstatat(folder, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

// The checked folder, or none when there is no such thing yet.
Result<Fd> open_folder(const std::string& folder) {
  if (!os::path_exists(folder)) return Fd();
  return os::open_private_folder(folder);
}

Result<Trusted> read_entry(int folder, const std::string& folder_path, const std::string& name) {
  const std::string path = folder_path + "/" + name;
  auto file = os::open_private_file_at(folder, name, path, os::file_uid());
  if (!file) return fail(std::move(file));
  auto bytes = os::read_whole(file->get(), kMaxEntryBytes);
  if (!bytes) return fail(bytes.error().reason, path + ": " + bytes.error().detail);
  auto entry = decode(*bytes, name);
  if (!entry) {
    return fail(Reason::Internal, path + " is damaged: remove it, and trust the policy file again");
  }
  return *std::move(entry);
}

Result<std::vector<std::string>> entry_names(int folder, const std::string& folder_path) {
  const int readable = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (readable < 0) return fail_errno(Reason::Internal, "open " + folder_path);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(readable), ::closedir);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!is_entry_name(entry->d_name)) continue;
    if (names.size() == kMaxTrusted) {
      return fail(Reason::TooLarge,
                  fmt::format("{} holds more than {} policy files: revoke some", folder_path, kMaxTrusted));
    }
    names.emplace_back(entry->d_name);
  }
  return names;
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(Reason::Internal, "write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status replace_file(int folder, const std::string& name, std::string_view bytes) {
  const std::string unfinished = name + kUnfinished;
  if (::unlinkat(folder, unfinished.c_str(), 0) != 0 && errno != ENOENT) {
    return fail_errno(Reason::Internal, "remove " + unfinished);
  }
  const Fd file(
      ::openat(folder, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno(Reason::Internal, "make " + unfinished);
  if (auto status = write_all(file.get(), bytes); !status) return status;
  if (::fsync(file.get()) != 0) return fail_errno(Reason::Internal, "write");
  if (::renameat(folder, unfinished.c_str(), folder, name.c_str()) != 0) {
    return fail_errno(Reason::Internal, "rename " + unfinished);
  }
  return {};
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

Result<std::optional<Trusted>> TrustStore::find(const std::string& path) const {
  auto folder = open_folder(folder_);
  if (!folder) return fail(std::move(folder));
  const std::string name = name_of(path);
  if (!*folder || !exists(folder->get(), name)) return std::nullopt;
  auto entry = read_entry(folder->get(), folder_, name);
  if (!entry) return fail(std::move(entry));
  return *std::move(entry);
}

Result<std::vector<Trusted>> TrustStore::all() const {
  auto folder = open_folder(folder_);
  if (!folder) return fail(std::move(folder));
  std::vector<Trusted> entries;
  if (!*folder) return entries;
  auto names = entry_names(folder->get(), folder_);
  if (!names) return fail(std::move(names));
  for (const std::string& name : *names) {
    auto entry = read_entry(folder->get(), folder_, name);
    if (!entry) return fail(std::move(entry));
    entries.push_back({std::move(entry->path), std::move(entry->sha256), ""});
  }
  std::ranges::sort(entries, {}, &Trusted::path);
  return entries;
}

Status TrustStore::trust(const std::string& path, std::string_view text) const {
  if (path.size() > PATH_MAX || text.size() > kMaxPolicyBytes) {
    return fail(Reason::TooLarge, "the policy file or its path is too long");
  }
  auto folder = os::make_private_folder(folder_);
  if (!folder) return fail(std::move(folder));
  auto names = entry_names(folder->get(), folder_);
  if (!names) return fail(std::move(names));
  const std::string name = name_of(path);
  if (names->size() == kMaxTrusted && std::ranges::find(*names, name) == names->end()) {
    return fail(Reason::TooLarge,
                fmt::format("{} policy files are trusted already: revoke some", kMaxTrusted));
  }
  return replace_file(folder->get(), name, encode(path, text));
}

Result<bool> TrustStore::revoke(const std::string& path) const {
  auto folder = open_folder(folder_);
  if (!folder) return fail(std::move(folder));
  if (!*folder) return false;
  if (::unlinkat(folder->get(), name_of(path).c_str(), 0) == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(Reason::Internal, "remove from " + folder_);
}

}  // namespace sallyport::config
