// git's pkt-lines (gitprotocol-common, "pkt-line Format"): four hex digits of length, which count themselves,
// and the data. An attacker chooses these bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sallyport::git {

inline constexpr std::size_t kPktHeadBytes = 4;
inline constexpr std::size_t kMaxPktBytes = 65520;  // with the head
inline constexpr std::string_view kFlushPkt = "0000";
inline constexpr std::string_view kDelimPkt = "0001";
inline constexpr std::string_view kResponseEndPkt = "0002";

enum class PktKind : std::uint8_t {
  Data,         // also an empty one, 0004
  Flush,        // 0000
  Delim,        // 0001
  ResponseEnd,  // 0002
};

struct Pkt {
  PktKind kind;
  std::string_view data;  // into what was parsed
  std::size_t bytes;      // with the head
};

// How many bytes a pkt-line with these first kPktHeadBytes bytes has, with them. A length that cannot be (not
// hex, 0003, over kMaxPktBytes) fails with `malformed`.
Result<std::size_t> pkt_bytes(std::string_view head, Reason malformed);

// The first pkt-line of `bytes`, or nullopt when more is needed. Fails as pkt_bytes() does, as soon as
// the length is there.
Result<std::optional<Pkt>> next_pkt(std::string_view bytes, Reason malformed);

// Appends one pkt-line. `data` is at most kMaxPktBytes - kPktHeadBytes long.
void append_pkt(std::string& out, std::string_view data);

}  // namespace sallyport::git
