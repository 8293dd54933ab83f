// For tests: bytes with a few faults, the same ones for the same seed.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>

namespace sallyport::gate::testing {

inline constexpr std::array<std::string_view, 24> kOddPieces{std::string_view("\0", 1),
                                                             "\r",
                                                             "\n",
                                                             "\t",
                                                             " ",
                                                             "\x0b",
                                                             "\x7f",
                                                             "\x80",
                                                             "\xa0",
                                                             "\xff",
                                                             "\r\n",
                                                             "\r\n\r\n",
                                                             ":",
                                                             ",",
                                                             ";",
                                                             "\"",
                                                             "/",
                                                             "..",
                                                             "%2e",
                                                             "%00",
                                                             "@",
                                                             "#",
                                                             "\\",
                                                             "\r\nHost: evil.test"};

// One to three bytes or pieces inserted, removed, changed or doubled.
inline std::string mutation_of(std::string bytes, std::mt19937& random) {
  for (unsigned faults = random() % 3 + 1; faults > 0 && !bytes.empty(); --faults) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 4) {
      case 0:
        bytes.insert(at, kOddPieces.at(random() % kOddPieces.size()));
        break;
      case 1:
        bytes.erase(at, 1);
        break;
      case 2:
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ 1U << random() % 8);
        break;
      default:
        bytes.insert(at, bytes.substr(at, random() % 40));
        break;
    }
  }
  return bytes;
}

}  // namespace sallyport::gate::testing
