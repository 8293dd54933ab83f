#include "git/refusal.h"

#include <fmt/format.h>

#include <algorithm>

#include "git/pktline.h"

namespace sallyport::git {
namespace {

// gitprotocol-pack, "Packfile Data": the first byte of a side-band packet.
constexpr char kBandData = '\x01';
constexpr char kBandProgress = '\x02';
constexpr std::size_t kMaxBandBytes = kMaxPktBytes - kPktHeadBytes - 1;

void append_band(std::string& out, char band, std::string_view data) {
  for (; !data.empty(); data.remove_prefix(std::min(data.size(), kMaxBandBytes))) {
    append_pkt(out, band + std::string(data.substr(0, kMaxBandBytes)));
  }
}

// gitprotocol-pack, "Report Status".
std::string report(const PushCommands& push, std::string_view why) {
  std::string out;
  append_pkt(out, "unpack ok\n");
  for (const RefUpdate& update : push.commands) append_pkt(out, fmt::format("ng {} {}\n", update.ref, why));
  return out += kFlushPkt;
}

}  // namespace

std::string request_type(policy::GitService service) {
  return fmt::format("application/x-{}-request", policy::name(service));
}
std::string result_type(policy::GitService service) {
  return fmt::format("application/x-{}-result", policy::name(service));
}
std::string advertisement_type(policy::GitService service) {
  return fmt::format("application/x-{}-advertisement", policy::name(service));
}

std::string fetch_refusal(std::string_view text) {
  std::string out;
  append_pkt(out, fmt::format("ERR {}", text.substr(0, kMaxBandBytes - 4)));
  return out;
}

std::optional<std::string> push_refusal(const PushCommands& push, std::string_view text,
                                        std::string_view why) {
  if (!push.can("report-status") && !push.can("report-status-v2")) return std::nullopt;
  std::string lines = report(push, why);
  if (!push.can("side-band-64k")) return lines;
  std::string out;
  append_band(out, kBandProgress, text);
  append_band(out, kBandData, lines);
  return out += kFlushPkt;
}

std::string lfs_refusal(std::string_view sentence, std::string_view request_id) {
  return fmt::format(R"({{"message":"sallyport: {}","request_id":"{}"}})", sentence, request_id);
}

}  // namespace sallyport::git
