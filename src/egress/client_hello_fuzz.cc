// Any bytes as the server_name extension, as a ClientHello's body and as a connection's first bytes. An
// accepted name must be exactly the bytes, but for case and one trailing dot; and how the bytes of a
// connection come in must not matter.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "base/text.h"
#include "egress/client_hello.h"

namespace sallyport::egress {
namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void read_server_name(std::string_view bytes) {
  const auto host = parse_server_name(bytes);
  if (!host) return;
  constexpr std::size_t kHeads = 5;
  std::string name = lowered(bytes.substr(kHeads));
  if (name.ends_with('.')) name.pop_back();
  check(name == host->str());
}

void read_body(std::string_view bytes) {
  const auto hello = parse_client_hello(bytes);
  if (!hello) return;
  check(lowered(bytes).contains(hello->host.str()));
  // It is all of it, and no more.
  check(!parse_client_hello(bytes.substr(0, bytes.size() - 1)));
  check(!parse_client_hello(std::string(bytes) + '\0'));
}

// The reason, or the message's body with what is left behind it cut off; "" while it waits.
struct Outcome {
  std::optional<Reason> refused;
  std::string body;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read_in_pieces_of(std::size_t size, std::string_view bytes) {
  HelloReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    const std::string_view piece = bytes.substr(at, size);
    const auto whole = reader.add(piece);
    check(reader.raw() == bytes.substr(0, at + piece.size()));
    if (!whole) return {whole.error().reason, ""};
    if (*whole) return {std::nullopt, std::string(reader.body())};
    check(reader.raw().size() < kMaxClientHelloBytes);
  }
  return {};
}

void read_connection(std::string_view bytes) {
  const Outcome at_once = read_in_pieces_of(std::max<std::size_t>(bytes.size(), 1), bytes);
  for (const std::size_t size : {1U, 2U, 7U, 500U}) check(read_in_pieces_of(size, bytes) == at_once);
  if (!at_once.body.empty()) read_body(at_once.body);
}

}  // namespace
}  // namespace sallyport::egress

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  egress::read_server_name(bytes);
  egress::read_body(bytes);
  egress::read_connection(bytes);
  return 0;
}
