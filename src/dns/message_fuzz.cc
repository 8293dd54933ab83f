// Any bytes as a DNS query: parsed, and answered in every way that there is.

#include <cstdint>
#include <cstdlib>

#include "dns/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::dns;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto query = parse_query(bytes);
  if (!query) {
    if (write_error(query.error()).size() > kMaxAnswerBytes) std::abort();
    return 0;
  }
  Answer longest{.rcode = Rcode::NxDomain, .ttl_seconds = 30, .has_soa = true};
  longest.blocked_text = std::string(1000, 'x');
  const std::string answer = write_answer(*query, longest);
  if (answer.size() > kMaxAnswerBytes) std::abort();
  // The question is repeated byte for byte.
  if (answer.compare(kHeaderBytes, query->question.size(), query->question) != 0) std::abort();
  if (bytes.substr(kHeaderBytes, query->question.size()) != query->question) std::abort();
  return 0;
}
