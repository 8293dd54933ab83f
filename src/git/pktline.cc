#include "git/pktline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>

#include "base/text.h"

namespace sallyport::git {

Result<std::size_t> pkt_bytes(std::string_view head, Reason malformed) {
  if (!std::ranges::all_of(head, is_hex)) return fail(malformed, "pkt-line length '" + escaped(head) + "'");
  std::size_t length = 0;
  for (const char c : head) length = length * 16 + hex_value(c);
  if (head == kFlushPkt || head == kDelimPkt || head == kResponseEndPkt) return kPktHeadBytes;
  if (length < kPktHeadBytes || length > kMaxPktBytes) {
    return fail(malformed, "pkt-line length '" + escaped(head) + "'");
  }
  return length;
}

Result<std::optional<Pkt>> next_pkt(std::string_view bytes, Reason malformed) {
  if (bytes.size() < kPktHeadBytes) return std::nullopt;
  const std::string_view head = bytes.substr(0, kPktHeadBytes);
  const auto length = pkt_bytes(head, malformed);
  if (!length) return fail(Result(length));
  if (bytes.size() < *length) return std::nullopt;
  if (head == kFlushPkt) return Pkt{PktKind::Flush, {}, kPktHeadBytes};
  if (head == kDelimPkt) return Pkt{PktKind::Delim, {}, kPktHeadBytes};
  if (head == kResponseEndPkt) return Pkt{PktKind::ResponseEnd, {}, kPktHeadBytes};
  return Pkt{PktKind::Data, bytes.substr(kPktHeadBytes, *length - kPktHeadBytes), *length};
}

void append_pkt(std::string& out, std::string_view data) {
  assert(data.size() <= kMaxPktBytes - kPktHeadBytes);
  fmt::format_to(std::back_inserter(out), "{:04x}{}", data.size() + kPktHeadBytes, data);
}

}  // namespace sallyport::git
