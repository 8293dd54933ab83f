#include "container/first_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "os/safe_path.h"
#include "sandbox/profile.h"

namespace sallyport::container {
namespace {

constexpr char kMemoryFolder[] = "/run";  // one of sandbox::private_folders()
constexpr char kProgramFolder[] = "/run/sallyport";
// A mount is a line of some hundred bytes.
constexpr std::size_t kMaxMountTableBytes = 4 * 1024 * 1024;

// proc(5): ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [FIELD...] - TYPE SOURCE OPTIONS
struct Line {
  std::string_view id;
  std::string_view parent;
  std::string_view root;
  std::string_view place;
  std::string_view options;
};

std::optional<Line> parse_line(std::string_view text) {
  const auto words = split(text, ' ');
  if (words.size() < 6) return std::nullopt;
  return Line{words[0], words[1], words[3], words[4], words[5]};
}

Status refuse(std::string_view why) {
  return fail(
      Reason::EngineRefused,
      fmt::format("the image keeps sallyport-init from being the first program in the container: {}", why));
}

std::vector<Line> at(const std::vector<Line>& lines, std::string_view place) {
  std::vector<Line> found;
  for (const Line& line : lines) {
    if (line.place == place) found.push_back(line);
  }
  return found;
}

bool is_read_only(const Line& line) {
  return line.options == "ro" || line.options.starts_with("ro,");
}

}  // namespace

Status check_program_mount(std::string_view mountinfo) {
  std::vector<Line> lines;
  for (const std::string_view text : split(mountinfo, '\n')) {
    if (text.empty()) continue;
    const auto line = parse_line(text);
    if (!line) return refuse("its mounts cannot be read");
    lines.push_back(*line);
  }
  const auto root = at(lines, "/");
  const auto memory = at(lines, kMemoryFolder);
  const auto program = at(lines, sandbox::kInitPath);
  if (root.size() != 1 || !is_read_only(root[0]))
    return refuse("its root folder is not one that is read-only");
  if (memory.size() != 1 || memory[0].parent != root[0].id || memory[0].root != "/") {
    return refuse(fmt::format("{} is a link, or has a volume", kMemoryFolder));
  }
  if (!at(lines, kProgramFolder).empty()) return refuse(fmt::format("{} has a volume", kProgramFolder));
  if (program.size() != 1 || program[0].parent != memory[0].id) {
    return refuse(fmt::format("{} is not where it should be", sandbox::kInitPath));
  }
  return {};
}

Status check_first_program(pid_t pid, const std::string& program) {
  const std::string table = fmt::format("/proc/{}/mountinfo", pid);
  const Fd file(::open(table.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno(Reason::Internal, "open " + table);
  auto mountinfo = os::read_whole(file.get(), kMaxMountTableBytes);
  if (!mountinfo) return fail(std::move(mountinfo));
  if (auto status = check_program_mount(*mountinfo); !status) return status;
  struct stat runs{};
  struct stat ours{};
  if (::stat(fmt::format("/proc/{}/exe", pid).c_str(), &runs) != 0 || ::stat(program.c_str(), &ours) != 0) {
    return fail_errno(Reason::Internal, "stat the container's first program");
  }
  if (runs.st_dev == ours.st_dev && runs.st_ino == ours.st_ino) return {};
  return refuse("another program runs there");
}

}  // namespace sallyport::container
