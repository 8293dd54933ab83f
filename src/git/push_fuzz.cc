// Any bytes as the head of a push: the outcome does not depend on how they are cut, and what goes upstream is
// read again as exactly what was judged.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "git/push.h"

using namespace sallyport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

struct Read {
  git::PushCommands push;
  std::size_t bytes = 0;
};

// nullopt: refused, or not complete.
std::optional<Read> read(std::string_view bytes, std::size_t piece) {
  git::PushReader reader;
  Read result;
  while (!reader.finished()) {
    if (result.bytes == bytes.size()) return std::nullopt;
    const auto taken = reader.feed(bytes.substr(result.bytes, piece));
    if (!taken) return std::nullopt;
    result.bytes += *taken;
  }
  result.push = reader.take();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = read(bytes, std::max<std::size_t>(size, 1));
  const auto pieces = read(bytes, 3);
  require(whole.has_value() == pieces.has_value());
  if (!whole) return 0;
  require(whole->bytes == pieces->bytes);

  const std::string again = git::serialise(whole->push);
  const auto second = read(again, again.size());
  require(second && second->bytes == again.size() && git::serialise(second->push) == again);
  require(second->push.commands.size() == whole->push.commands.size());
  for (const git::RefUpdate& update : whole->push.commands) {
    require(git::is_ref_name(update.ref) && update.old_id.size() == update.new_id.size());
  }
  return 0;
}
