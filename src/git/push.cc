#include "git/push.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "git/pktline.h"

namespace sallyport::git {
namespace {

constexpr std::string_view kShallow = "shallow ";
constexpr std::string_view kCertificate = "push-cert";
constexpr std::size_t kSha1Digits = 40;
constexpr std::size_t kSha256Digits = 64;
constexpr std::string_view kSha256Format = "object-format=sha256";

// gitprotocol-capabilities, those that a client sends to receive-pack; with '=' at the end: a value follows.
constexpr std::array<std::string_view, 11> kKnownCapabilities{
    "report-status", "report-status-v2", "side-band-64k", "quiet",       "atomic",       "ofs-delta",
    "delete-refs",   "object-format=",   "agent=",        "session-id=", "push-options",
};

std::unexpected<Error> bad(std::string detail) {
  return fail(Reason::BadPush, std::move(detail));
}

bool is_object_id(std::string_view text) {
  const auto is_lower_hex = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
  return (text.size() == kSha1Digits || text.size() == kSha256Digits) &&
         std::ranges::all_of(text, is_lower_hex);
}

// "name" or "name=", as in the table above.
std::string_view capability_key(std::string_view capability) {
  const std::size_t equals = capability.find('=');
  return equals == std::string_view::npos ? capability : capability.substr(0, equals + 1);
}

bool is_known_capability(std::string_view capability) {
  const std::string_view key = capability_key(capability);
  if (std::ranges::find(kKnownCapabilities, key) == kKnownCapabilities.end()) return false;
  if (key == "object-format=") return capability == kSha256Format || capability == "object-format=sha1";
  return true;
}

bool is_ref_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte != 0x7f && std::string_view("~^:?*[\\").find(c) == std::string_view::npos;
}

bool is_ref_component(std::string_view component) {
  return !component.empty() && !component.starts_with('.') && !component.ends_with(".lock") &&
         component.find("..") == std::string_view::npos && component.find("@{") == std::string_view::npos;
}

// SP old SP new SP ref, old and new of the same length.
Result<RefUpdate> parse_command(std::string_view line) {
  const std::size_t digits = std::min(line.find(' '), line.size());
  const std::size_t ref_at = 2 * digits + 2;
  if (line.size() <= ref_at || line[ref_at - 1] != ' ') return bad("command '" + escaped(line) + "'");
  RefUpdate update{.old_id = std::string(line.substr(0, digits)),
                   .new_id = std::string(line.substr(digits + 1, digits)),
                   .ref = std::string(line.substr(ref_at))};
  if (!is_object_id(update.old_id) || !is_object_id(update.new_id)) {
    return bad("object id in '" + escaped(line) + "'");
  }
  if (!is_ref_name(update.ref)) return bad("ref name '" + escaped(update.ref) + "'");
  return update;
}

}  // namespace

bool RefUpdate::deletes() const {
  return std::ranges::all_of(new_id, [](char c) { return c == '0'; });
}

bool PushCommands::has_pack() const {
  return !std::ranges::all_of(commands, &RefUpdate::deletes);
}

bool PushCommands::can(std::string_view capability) const {
  return std::ranges::find(capabilities, capability) != capabilities.end();
}

Result<std::size_t> PushReader::feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (!finished_ && taken < bytes.size()) {
    // Up to the head of a pkt-line, then up to its end: never a byte of what follows it.
    std::size_t wanted = kPktHeadBytes;
    if (partial_.size() >= kPktHeadBytes) {
      const auto length = pkt_bytes(std::string_view(partial_).substr(0, kPktHeadBytes), Reason::BadPush);
      if (!length) return length;
      wanted = *length;
    }
    const std::string_view piece = bytes.substr(taken, wanted - partial_.size());
    partial_ += piece;
    taken += piece.size();
    total_ += piece.size();
    if (total_ > kMaxPushHeadBytes) return bad("the list of commands is too long");

    const auto pkt = next_pkt(partial_, Reason::BadPush);
    if (!pkt) return fail(Result(pkt));
    if (!*pkt) continue;
    if ((*pkt)->kind == PktKind::Delim || (*pkt)->kind == PktKind::ResponseEnd) {
      return bad("the list ends with something else than a flush-pkt");
    }
    auto ok = (*pkt)->kind == PktKind::Flush ? end() : accept((*pkt)->data);
    if (!ok) return fail(std::move(ok));
    partial_.clear();
  }
  return taken;
}

Status PushReader::accept(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.substr(0, line.find('\0')) == kCertificate) return fail(Reason::PushCertificate, "");
  if (line.starts_with(kShallow)) {
    const std::string_view id = line.substr(kShallow.size());
    if (!push_.commands.empty()) return bad("a shallow line behind a command");
    if (!is_object_id(id)) return bad("shallow line '" + escaped(line) + "'");
    if (push_.shallow.size() == kMaxShallowLines) return bad("too many shallow lines");
    push_.shallow.emplace_back(id);
    return {};
  }
  if (push_.commands.size() == kMaxPushCommands) return bad("too many commands");
  const std::size_t nul = line.find('\0');
  if (nul != std::string_view::npos) {
    // git takes capabilities from any line; only the first one may have them here.
    if (!push_.commands.empty()) return bad("capabilities behind a later command");
    if (auto ok = accept_capabilities(line.substr(nul + 1)); !ok) return ok;
    line = line.substr(0, nul);
  }
  auto update = parse_command(line);
  if (!update) return fail(std::move(update));
  push_.commands.push_back(std::move(*update));
  return {};
}

Status PushReader::accept_capabilities(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  if (text.empty()) return {};
  for (const std::string_view capability : split(text, ' ')) {
    if (capability.size() > kMaxCapabilityBytes || !std::ranges::all_of(capability, is_visible) ||
        !is_known_capability(capability)) {
      return bad("capability '" + escaped(capability) + "'");
    }
    const std::string_view key = capability_key(capability);
    const auto same = [&](const std::string& other) { return capability_key(other) == key; };
    if (std::ranges::any_of(push_.capabilities, same)) return bad("capability '" + escaped(key) + "' twice");
    push_.capabilities.emplace_back(capability);
  }
  return {};
}

Status PushReader::end() {
  finished_ = true;
  if (push_.commands.empty()) {
    if (!push_.shallow.empty()) return bad("shallow lines without a command");
    return {};
  }
  const std::size_t digits = push_.can(kSha256Format) ? kSha256Digits : kSha1Digits;
  const auto fits = [&](const std::string& id) { return id.size() == digits; };
  const bool all_fit = std::ranges::all_of(push_.commands, fits, &RefUpdate::new_id) &&
                       std::ranges::all_of(push_.shallow, fits);
  if (!all_fit) return bad("object ids do not fit the object format");
  std::unordered_set<std::string_view> refs;
  for (const RefUpdate& update : push_.commands) {
    if (!refs.insert(update.ref).second) return bad("ref '" + escaped(update.ref) + "' twice");
  }
  return {};
}

std::string serialise(const PushCommands& push) {
  std::string out;
  for (const std::string& id : push.shallow) append_pkt(out, std::string(kShallow) + id + '\n');
  bool first = true;
  for (const RefUpdate& update : push.commands) {
    std::string line = update.old_id + ' ' + update.new_id + ' ' + update.ref;
    if (std::exchange(first, false)) {
      line += '\0';
      for (const std::string& capability : push.capabilities) line += ' ' + capability;
    }
    append_pkt(out, line);
  }
  return out += kFlushPkt;
}

bool is_ref_name(std::string_view ref) {
  if (ref.size() > kMaxRefBytes || !ref.starts_with("refs/") || ref.ends_with('.')) return false;
  return std::ranges::all_of(ref, is_ref_char) && std::ranges::all_of(split(ref, '/'), is_ref_component);
}

}  // namespace sallyport::git
