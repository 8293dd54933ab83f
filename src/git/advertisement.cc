#include "git/advertisement.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "git/pktline.h"

namespace sallyport::git {
namespace {

constexpr std::array<std::string_view, 3> kDroppedV2{"bundle-uri", "packfile-uris", "promisor-remote"};
constexpr std::array<std::string_view, 2> kDroppedPush{"push-cert", "push-options"};

// A capability's name, without "=value" and the line's end.
std::string_view key_of(std::string_view capability) {
  return capability.substr(0, capability.find_first_of("=\n"));
}

template <std::size_t N>
bool is_one_of(std::string_view capability, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, key_of(capability)) != names.end();
}

// `text` without the words that `names` holds.
template <std::size_t N>
std::string without(std::string_view text, const std::array<std::string_view, N>& names) {
  std::string out;
  bool first = true;
  for (const std::string_view word : split(text, ' ')) {
    if (is_one_of(word, names)) continue;
    if (!first) out += ' ';
    first = false;
    out += word;
  }
  return out;
}

}  // namespace

Result<std::string> AdvertisementFilter::feed(std::string_view bytes) {
  std::string out;
  partial_ += bytes;
  std::string_view rest = partial_;
  for (;;) {
    const auto pkt = next_pkt(rest, Reason::UpstreamMalformed);
    if (!pkt) return fail(Result(pkt));
    if (!*pkt) break;
    const std::string_view whole = rest.substr(0, (*pkt)->bytes);
    if ((*pkt)->kind == PktKind::Data) {
      pass(out, whole, (*pkt)->data);
    } else {
      out += whole;
    }
    rest.remove_prefix((*pkt)->bytes);
  }
  partial_.erase(0, partial_.size() - rest.size());
  return out;
}

Status AdvertisementFilter::finish() const {
  if (!partial_.empty()) return fail(Reason::UpstreamTruncated, "in the middle of a pkt-line");
  return {};
}

void AdvertisementFilter::pass(std::string& out, std::string_view whole, std::string_view data) {
  std::string changed(data);
  switch (service_) {
    case policy::GitService::UploadPack: {
      if (trimmed(key_of(data)) == "version 2") version_2_ = true;
      if (!version_2_) break;
      if (is_one_of(data, kDroppedV2)) return;
      constexpr std::string_view kFetch = "fetch=";
      if (!data.starts_with(kFetch)) break;
      const std::string_view line_end = data.ends_with('\n') ? "\n" : "";
      const std::string_view features =
          data.substr(kFetch.size(), data.size() - kFetch.size() - line_end.size());
      changed = std::string(kFetch) + without(features, kDroppedV2) + std::string(line_end);
      break;
    }
    case policy::GitService::ReceivePack: {
      const std::size_t nul = data.find('\0');
      if (capabilities_seen_ || nul == std::string_view::npos) break;
      capabilities_seen_ = true;
      const std::string_view line_end = data.ends_with('\n') ? "\n" : "";
      const std::string_view words = data.substr(nul + 1, data.size() - nul - 1 - line_end.size());
      changed = std::string(data.substr(0, nul + 1)) + without(words, kDroppedPush) + std::string(line_end);
      break;
    }
  }
  if (changed == data) {
    out += whole;
  } else {
    append_pkt(out, changed);
  }
}

}  // namespace sallyport::git
