// What our code makes of a connection's bytes: each line of stdin is one connection in hexadecimal, each line
// of stdout tells what was judged and, byte for byte, what an upstream would get.
// tests/e2e/test_differential.py gives the latter to other programs and compares.
//
//   LINES [METHOD TARGET COMPLETE BYTES]...      LINES: the audit lines, "refused:bad_request,begin,..."
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/text.h"
#include "gate/fake_front.h"

using namespace sallyport;

namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes += static_cast<char>(hex_value(hex[at]) << 4U | hex_value(hex[at + 1]));
  }
  return bytes;
}

}  // namespace

int main() {
  const policy::Grant grant = gate::testing::forge_grant();
  for (std::string line; std::getline(std::cin, line);) {
    const gate::testing::Verdict verdict = gate::testing::serve_bytes({from_hex(line)}, grant);
    std::string out = verdict.lines.empty() ? "nothing" : "";
    for (std::string audit_line : verdict.lines) {
      std::ranges::replace(audit_line, ' ', ':');
      out += (out.empty() ? "" : ",") + audit_line;
    }
    for (std::size_t i = 0; i < verdict.sent.size(); ++i) {
      const auto& [method, target] = verdict.judged.at(i);
      out += ' ' + method + ' ' + target + (verdict.sent[i].complete ? " yes " : " no ") +
             to_hex(verdict.sent[i].bytes);
    }
    std::puts(out.c_str());
  }
  return 0;
}
