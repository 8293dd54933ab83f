#include "container/pause_image.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "os/safe_path.h"

namespace sallyport::container {
namespace {

// A build with sanitizers has no static one. What is tested there by an engine gets that of a release.
#ifdef SALLYPORT_DYNAMIC_INIT
constexpr bool kInitIsStatic = false;
#else
constexpr bool kInitIsStatic = true;
#endif

constexpr std::size_t kTarBlock = 512;
constexpr std::size_t kTagBytes = 16;

// POSIX.1-1988 ustar. Numbers are octal text that ends with NUL.
struct TarHeader {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char modified[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6];
  char version[2];
  char rest[247];
};
static_assert(sizeof(TarHeader) == kTarBlock);

template <std::size_t Size>
void put(char (&field)[Size], std::string_view text) {
  std::memcpy(field, text.data(), std::min(Size, text.size()));
}

TarHeader header_of(std::string_view name, std::size_t size) {
  TarHeader header{};
  put(header.name, name);
  put(header.mode, "0000755");
  put(header.uid, "0000000");
  put(header.gid, "0000000");
  put(header.size, fmt::format("{:011o}", size));
  put(header.modified, "00000000000");
  put(header.checksum, "        ");  // counts as blanks
  header.type = '0';
  put(header.magic, std::string_view("ustar\0", 6));
  put(header.version, "00");
  std::uint32_t sum = 0;
  for (const unsigned char byte : std::bit_cast<std::array<unsigned char, kTarBlock>>(header)) sum += byte;
  put(header.checksum, std::string_view(fmt::format("{:06o}\0 ", sum)));
  return header;
}

std::string tar_of(std::string_view name, std::string_view content) {
  const TarHeader header = header_of(name, content.size());
  std::string tar(reinterpret_cast<const char*>(&header), sizeof header);
  tar += content;
  // The last block is filled up, and two empty ones are the end.
  tar.resize((tar.size() + kTarBlock - 1) / kTarBlock * kTarBlock + 2 * kTarBlock);
  return tar;
}

std::string tag_of(std::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(content.data(), content.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    return "";
  std::string tag;
  for (std::size_t i = 0; i < kTagBytes; ++i) tag += fmt::format("{:02x}", digest[i]);
  return tag;
}

// A program that wants an interpreter is none for an empty image.
bool is_static(std::string_view program) {
  Elf64_Ehdr head{};
  if (program.size() < sizeof head) return false;
  std::memcpy(&head, program.data(), sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return false;
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    const std::size_t at = head.e_phoff + i * sizeof part;
    if (at > program.size() || program.size() - at < sizeof part) return false;
    std::memcpy(&part, program.data() + at, sizeof part);
    if (part.p_type == PT_INTERP) return false;
  }
  return true;
}

Result<Fd> to_memory_file(std::string_view bytes) {
  Fd file(::memfd_create("pause image", MFD_CLOEXEC));
  if (!file) return fail_errno(Reason::Internal, "memfd_create");
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail_errno(Reason::Internal, "write the pause image");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return fail_errno(Reason::Internal, "lseek");
  return file;
}

}  // namespace

Result<PauseImage> make_pause_image(const std::string& program) {
  const Fd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(Reason::Internal, "open " + program);
  auto content = os::read_whole(file.get(), kMaxProgramBytes);
  if (!content) return fail(std::move(content));
  if (kInitIsStatic && !is_static(*content)) {
    return fail(
        Reason::Internal,
        program + " is not linked statically, so it cannot run in a container (a build with sanitizers?)");
  }
  auto tar = to_memory_file(tar_of(std::string_view(kPauseProgram).substr(1), *content));
  if (!tar) return fail(std::move(tar));
  return PauseImage{std::move(*tar), tag_of(*content)};
}

}  // namespace sallyport::container
