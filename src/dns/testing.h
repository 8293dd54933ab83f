// Queries and answers for this room's tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"
#include "dns/message.h"

namespace sallyport::dns::testing {

inline const std::string kOpt{"\0\0\x29\x04\xd0\0\0\0\0\0\0", 11};

struct QueryShape {
  std::uint16_t flags = 0x0100;  // recursion desired
  std::uint16_t klass = kClassIn;
  std::uint16_t questions = 1;
  std::uint16_t answers = 0;
  std::uint16_t authorities = 0;
  int additionals = -1;  // -1: one when `additional` is not empty
  std::string additional = "";
};

inline std::string u16(unsigned value) {
  return {static_cast<char>(value >> 8U & 0xFFU), static_cast<char>(value & 0xFFU)};
}

// `name` as it stands on the wire, well-formed or not.
inline std::string raw_query(std::string_view name, std::uint16_t type, const QueryShape& shape = {}) {
  const int additionals = shape.additionals >= 0 ? shape.additionals : (shape.additional.empty() ? 0 : 1);
  std::string out = u16(0x1234) + u16(shape.flags) + u16(shape.questions) + u16(shape.answers) +
                    u16(shape.authorities) + u16(static_cast<unsigned>(additionals));
  out += name;
  out += u16(type) + u16(shape.klass) + shape.additional;
  return out;
}

inline std::string make_query(std::string_view name, std::uint16_t type, const QueryShape& shape = {}) {
  std::string wire;
  for (const auto label : split(name, '.')) {
    wire += static_cast<char>(label.size());
    wire += label;
  }
  wire += '\0';
  return raw_query(wire, type, shape);
}

struct AnswerHeader {
  std::uint16_t id, flags, questions, answers, authorities, additionals;
  int rcode() const { return flags & 0xF; }
};
// Zeros when the bytes are too few.
inline AnswerHeader read_answer(std::string_view bytes) {
  const auto at = [bytes](std::size_t index) -> std::uint16_t {
    if (bytes.size() < kHeaderBytes) return 0;
    const auto high = static_cast<unsigned>(static_cast<unsigned char>(bytes[index * 2])) << 8U;
    return static_cast<std::uint16_t>(high | static_cast<unsigned char>(bytes[index * 2 + 1]));
  };
  return {at(0), at(1), at(2), at(3), at(4), at(5)};
}

}  // namespace sallyport::dns::testing
