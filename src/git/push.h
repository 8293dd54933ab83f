// What a push asks for: the list of commands at the head of a git-receive-pack request (gitprotocol-pack,
// "Reference Update Request"), read as git reads it, and refused where git would be tolerant. What goes
// upstream is written anew from what was understood here, so that nobody can read another list than we did.
//
// A push certificate is refused here (PushCertificate), since the list lies inside it. A list that announces
// push options is read, so that the refusal can name every ref; whoever carries out a push refuses it before:
// nothing judges either of them yet.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::git {

inline constexpr std::size_t kMaxPushHeadBytes = std::size_t{8} * 1024 * 1024;  // 30,000 refs are about 3 MiB
inline constexpr std::size_t kMaxPushCommands = 50'000;
inline constexpr std::size_t kMaxShallowLines = 50'000;
inline constexpr std::size_t kMaxRefBytes = 1024;
inline constexpr std::size_t kMaxCapabilityBytes = 256;  // one capability with its value

struct RefUpdate {
  std::string old_id;  // 40 or 64 lower-case hex digits; zeros: the ref is created
  std::string new_id;  // zeros: the ref is deleted
  std::string ref;     // "refs/...", bytes as git sent them

  bool deletes() const;
};

struct PushCommands {
  std::vector<std::string> shallow;  // ids
  std::vector<RefUpdate> commands;
  std::vector<std::string> capabilities;  // "report-status", "agent=git/2.39.5", ...

  // "0000" alone: git asks whether the server would take its request before it sends a large one.
  bool probe() const { return commands.empty(); }
  // A pack follows unless nothing but deletions is asked.
  bool has_pack() const;
  bool can(std::string_view capability) const;
  bool has_options() const { return can("push-options"); }
};

// Reads the list while it arrives. It ends at the first flush-pkt and nowhere else.
class PushReader {
 public:
  // Takes bytes up to the list's end at most, and gives how many; the rest is the pack's. BadPush or
  // PushCertificate for any deviation. Not called again after a failure.
  Result<std::size_t> feed(std::string_view bytes);
  bool finished() const { return finished_; }
  // The list, once finished.
  PushCommands take() { return std::move(push_); }

 private:
  Status accept(std::string_view line);
  Status accept_capabilities(std::string_view text);
  Status end();

  std::string partial_;  // a pkt-line that is not complete
  std::size_t total_ = 0;
  bool finished_ = false;
  PushCommands push_;
};

// The list with its flush-pkt, as git itself would write it.
std::string serialise(const PushCommands& push);

// git check-ref-format for a full name, on bytes: below refs/, no component that is empty, starts with '.' or
// ends with ".lock", no "..", no "@{", no controls, space, ~^:?*[\, no '.' at the end.
bool is_ref_name(std::string_view ref);

}  // namespace sallyport::git
