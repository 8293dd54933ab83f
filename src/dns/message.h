// The bytes of DNS (RFC 1035): reading one question strictly and writing one small answer. The sandbox
// chooses every byte of a query.
//
// There is no general parser of messages: nothing here ever reads an answer, since no question leaves the
// host. So compression pointers are never followed; in a question they have no use and are malformed.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace sallyport::dns {

// A question, with an OPT record full of options, fits in far less.
inline constexpr std::size_t kMaxQueryBytes = 4096;
inline constexpr std::size_t kHeaderBytes = 12;  // RFC 1035, 4.1.1
// What every resolver takes over UDP (RFC 1035, 4.2.1). No answer of ours is larger, so nothing is ever
// truncated: the longest name, our SOA and our OPT record come to less.
inline constexpr std::size_t kMaxAnswerBytes = 512;

inline constexpr std::uint16_t kTypeA = 1;
inline constexpr std::uint16_t kTypeSoa = 6;
inline constexpr std::uint16_t kTypeOpt = 41;
inline constexpr std::uint16_t kTypeIxfr = 251;
inline constexpr std::uint16_t kTypeAxfr = 252;
inline constexpr std::uint16_t kTypeAny = 255;
inline constexpr std::uint16_t kClassIn = 1;

// "A", "AAAA", ... or "TYPE65280" (RFC 3597, 5).
std::string type_name(std::uint16_t type);

enum class Rcode : std::uint16_t {
  NoError = 0,
  FormErr = 1,
  NxDomain = 3,
  NotImp = 4,
  Refused = 5,
  BadVers = 16,  // RFC 6891, 9: needs an OPT record in the answer
};

struct Query {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  // Labels joined by '.', in the case that was asked; every byte that is not a letter, digit, '-' or '_' is
  // written \DDD (RFC 1035, 5.1), so that a dot or NUL within a label cannot pass for anything else. The
  // root is "".
  std::string name;
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  // The question as it came, for the answer to repeat: resolvers that mix upper and lower case compare it.
  std::string question;
  bool has_edns = false;
};

// A query that is not answered by its meaning: dropped, or answered with an error alone.
struct NoQuery {
  enum class What : std::uint8_t { Drop, Answer };
  What what = What::Drop;
  Rcode rcode = Rcode::FormErr;
  std::uint16_t id = 0;
  bool recursion_desired = false;
  std::string detail;
};

// Exactly one question, no other record but one OPT (RFC 6891), nothing behind it.
std::expected<Query, NoQuery> parse_query(std::string_view bytes);

struct Answer {
  Rcode rcode = Rcode::NoError;
  std::optional<std::array<std::uint8_t, 4>> address;  // one A record for the question's name
  std::uint32_t ttl_seconds = 0;                       // of that record, or of the SOA
  bool has_soa = false;                                // in the authority section, for negative answers
  std::string blocked_text;  // not empty: Extended DNS Error 15 with this text (RFC 8914), if asked with EDNS
};

std::string write_answer(const Query& query, const Answer& answer);
// The header alone (and an OPT record for BadVers), echoing nothing of a question that could not be read.
std::string write_error(const NoQuery& failure);

}  // namespace sallyport::dns
