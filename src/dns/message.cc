#include "dns/message.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"

namespace sallyport::dns {
namespace {

constexpr std::uint16_t kFlagResponse = 0x8000;
constexpr std::uint16_t kFlagAuthoritative = 0x0400;
constexpr std::uint16_t kFlagRecursionDesired = 0x0100;
constexpr std::uint16_t kFlagRecursionAvailable = 0x0080;
constexpr unsigned kOpcodeShift = 11;
constexpr unsigned kOpcodeMask = 0xF;

constexpr std::size_t kMaxNameBytes = 255;  // RFC 1035, 2.3.4, with the root's zero
constexpr std::uint8_t kMaxLabelBytes = 63;

constexpr std::uint16_t kEdnsPayloadBytes = 1232;  // what we would take: no fragments on any usual link
constexpr std::uint16_t kOptionExtendedError = 15;
constexpr std::uint16_t kExtendedErrorBlocked = 15;
constexpr std::uint16_t kPointerToQuestion = 0xC000 | kHeaderBytes;
constexpr std::size_t kMaxBlockedText = 96;  // keeps the answer under kMaxAnswerBytes

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  bool has(std::size_t count) const { return bytes_.size() - at_ >= count; }
  bool at_end() const { return at_ == bytes_.size(); }
  std::size_t position() const { return at_; }
  // The caller asked has() before.
  std::uint8_t u8() { return static_cast<std::uint8_t>(bytes_[at_++]); }
  std::uint16_t u16() {
    const auto high = static_cast<unsigned>(u8()) << 8U;
    return static_cast<std::uint16_t>(high | u8());
  }
  std::string_view take(std::size_t count) { return bytes_.substr(std::exchange(at_, at_ + count), count); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

void put8(std::string& out, unsigned value) {
  out.push_back(static_cast<char>(static_cast<unsigned char>(value)));
}
void put16(std::string& out, unsigned value) {
  put8(out, value >> 8U & 0xFFU);
  put8(out, value & 0xFFU);
}
void put32(std::string& out, std::uint32_t value) {
  put16(out, value >> 16U);
  put16(out, value & 0xFFFFU);
}

void append_label(std::string& name, std::string_view label) {
  if (!name.empty()) name += '.';
  for (const char c : label) {
    if (is_alnum(c) || c == '-' || c == '_') {
      name += c;
    } else {
      name += fmt::format("\\{:03}", static_cast<unsigned char>(c));
    }
  }
}

// Each returns what is wrong, or "".
std::string_view read_name(Cursor& cursor, std::string& name) {
  const std::size_t start = cursor.position();
  while (true) {
    if (!cursor.has(1)) return "the name is cut";
    const std::uint8_t length = cursor.u8();
    if (length == 0) break;
    if (length > kMaxLabelBytes) return "a label is no label (pointer, or a reserved type)";
    if (!cursor.has(length)) return "a label is cut";
    append_label(name, cursor.take(length));
    // One more for the root's zero, which must follow.
    if (cursor.position() - start + 1 > kMaxNameBytes) return "the name is too long";
  }
  return "";
}

std::string_view read_question(Cursor& cursor, std::string_view bytes, Query& query) {
  const std::size_t start = cursor.position();
  if (const auto problem = read_name(cursor, query.name); !problem.empty()) return problem;
  if (!cursor.has(4)) return "the question is cut";
  query.type = cursor.u16();
  query.klass = cursor.u16();
  query.question = bytes.substr(start, cursor.position() - start);
  if (query.type == kTypeOpt) return "OPT is asked for";
  return "";
}

// RFC 6891, 6.1. Options are skipped: none of them changes an answer.
std::string_view read_opt(Cursor& cursor, std::uint8_t& version) {
  if (!cursor.has(11)) return "the additional record is cut";
  if (cursor.u8() != 0 || cursor.u16() != kTypeOpt) return "an additional record is not OPT";
  cursor.u16();  // payload size: our answers fit the smallest
  cursor.u8();   // upper bits of the rcode
  version = cursor.u8();
  cursor.u16();  // flags
  const std::uint16_t length = cursor.u16();
  if (!cursor.has(length)) return "the OPT record is cut";
  Cursor options(cursor.take(length));
  while (!options.at_end()) {
    if (!options.has(4)) return "an option is cut";
    options.u16();
    const std::uint16_t option_bytes = options.u16();
    if (!options.has(option_bytes)) return "an option is cut";
    options.take(option_bytes);
  }
  return "";
}

void put_header(std::string& out, std::uint16_t id, unsigned flags, unsigned questions, unsigned answers,
                unsigned authorities, unsigned additionals) {
  put16(out, id);
  put16(out, flags);
  put16(out, questions);
  put16(out, answers);
  put16(out, authorities);
  put16(out, additionals);
}

// The zone that denies: the root, since it is above every name. RFC 2308 wants it for negative caching.
void put_soa(std::string& out, std::uint32_t ttl) {
  using namespace std::string_literals;
  const std::string name = "\x09sallyport\x07invalid\0"s;
  std::string data = name + name;
  put32(data, 1);    // serial
  put32(data, ttl);  // refresh
  put32(data, ttl);  // retry
  put32(data, ttl);  // expire
  put32(data, ttl);  // minimum
  put8(out, 0);
  put16(out, kTypeSoa);
  put16(out, kClassIn);
  put32(out, ttl);
  put16(out, static_cast<unsigned>(data.size()));
  out += data;
}

void put_opt(std::string& out, Rcode rcode, std::string_view blocked_text) {
  blocked_text = blocked_text.substr(0, kMaxBlockedText);
  put8(out, 0);
  put16(out, kTypeOpt);
  put16(out, kEdnsPayloadBytes);
  put8(out, std::to_underlying(rcode) >> 4U);
  put8(out, 0);   // version
  put16(out, 0);  // flags
  if (blocked_text.empty()) {
    put16(out, 0);
    return;
  }
  const auto text_bytes = static_cast<unsigned>(blocked_text.size());
  put16(out, 4 + 2 + text_bytes);
  put16(out, kOptionExtendedError);
  put16(out, 2 + text_bytes);
  put16(out, kExtendedErrorBlocked);
  out += blocked_text;
}

unsigned answer_flags(bool recursion_desired, Rcode rcode) {
  unsigned flags = kFlagResponse | kFlagRecursionAvailable | (std::to_underlying(rcode) & 0xFU);
  if (recursion_desired) flags |= kFlagRecursionDesired;
  return flags;
}

}  // namespace

std::string type_name(std::uint16_t type) {
  struct Name {
    std::uint16_t type;
    std::string_view name;
  };
  static constexpr Name kNames[] = {
      {1, "A"},     {2, "NS"},   {5, "CNAME"}, {6, "SOA"},    {12, "PTR"},   {15, "MX"},    {16, "TXT"},
      {28, "AAAA"}, {33, "SRV"}, {64, "SVCB"}, {65, "HTTPS"}, {251, "IXFR"}, {252, "AXFR"}, {255, "ANY"},
  };
  for (const auto& known : kNames) {
    if (known.type == type) return std::string(known.name);
  }
  return fmt::format("TYPE{}", type);
}

std::expected<Query, NoQuery> parse_query(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) {
    return std::unexpected(NoQuery{.detail = "shorter than a header"});
  }
  Cursor cursor(bytes);
  Query query;
  query.id = cursor.u16();
  const std::uint16_t flags = cursor.u16();
  const std::uint16_t questions = cursor.u16();
  const std::uint16_t answers = cursor.u16();
  const std::uint16_t authorities = cursor.u16();
  const std::uint16_t additionals = cursor.u16();
  query.recursion_desired = (flags & kFlagRecursionDesired) != 0;

  const auto refuse = [&query](Rcode rcode, std::string_view detail) {
    return std::unexpected(
        NoQuery{NoQuery::What::Answer, rcode, query.id, query.recursion_desired, std::string(detail)});
  };
  // An answer to an answer would be a loop between two servers.
  if ((flags & kFlagResponse) != 0) return std::unexpected(NoQuery{.detail = "an answer, not a query"});
  if (bytes.size() > kMaxQueryBytes) return refuse(Rcode::FormErr, "too large");
  if ((flags >> kOpcodeShift & kOpcodeMask) != 0) return refuse(Rcode::NotImp, "the opcode is not QUERY");
  if (questions != 1 || answers != 0 || authorities != 0 || additionals > 1) {
    return refuse(Rcode::FormErr, "not one question alone");
  }
  if (const auto problem = read_question(cursor, bytes, query); !problem.empty()) {
    return refuse(Rcode::FormErr, problem);
  }
  std::uint8_t edns_version = 0;
  if (additionals == 1) {
    if (const auto problem = read_opt(cursor, edns_version); !problem.empty()) {
      return refuse(Rcode::FormErr, problem);
    }
    query.has_edns = true;
  }
  if (!cursor.at_end()) return refuse(Rcode::FormErr, "bytes behind the last record");
  if (edns_version != 0) return refuse(Rcode::BadVers, "the EDNS version is not 0");
  return query;
}

std::string write_answer(const Query& query, const Answer& answer) {
  std::string out;
  const unsigned flags = answer_flags(query.recursion_desired, answer.rcode) | kFlagAuthoritative;
  put_header(out, query.id, flags, 1, answer.address ? 1 : 0, answer.has_soa ? 1 : 0, query.has_edns ? 1 : 0);
  out += query.question;
  if (answer.address) {
    put16(out, kPointerToQuestion);
    put16(out, kTypeA);
    put16(out, kClassIn);
    put32(out, answer.ttl_seconds);
    put16(out, static_cast<unsigned>(answer.address->size()));
    for (const std::uint8_t byte : *answer.address) put8(out, byte);
  }
  if (answer.has_soa) put_soa(out, answer.ttl_seconds);
  if (query.has_edns) put_opt(out, answer.rcode, answer.blocked_text);
  return out;
}

std::string write_error(const NoQuery& failure) {
  std::string out;
  const bool needs_opt = failure.rcode == Rcode::BadVers;
  put_header(out, failure.id, answer_flags(failure.recursion_desired, failure.rcode), 0, 0, 0,
             needs_opt ? 1 : 0);
  if (needs_opt) put_opt(out, failure.rcode, "");
  return out;
}

}  // namespace sallyport::dns
