// What our code makes of a connection's bytes: each line of stdin is one connection in hexadecimal, each line
// of stdout tells what was judged and, byte for byte, what an upstream would get.
// tests/e2e/test_differential.py gives the latter to other programs and compares.
//
//   LINES [METHOD TARGET COMPLETE BYTES]...      LINES: the audit lines, "refused:bad_request,begin,..."
//
// The argument says how the connections come: "git", to a host of git under TLS; or, with a policy of [[allow]]
// rules, "tls", "clear" or "proxy".
#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/text.h"
#include "gate/egress_grant.h"
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

struct Way {
  policy::Grant grant;
  gate::testing::Arrival arrival;
};

// Everything that has one answer, whatever it is: a HEAD's has no body, and servers may answer an OPTIONS
// themselves.
Way way_of(std::string_view name) {
  using enum policy::Method;
  if (name == "git") return {gate::testing::forge_grant(), gate::testing::under_tls()};
  policy::Grant grant;
  grant.allow.push_back(gate::testing::allow_rule("forge.test", {Get, Post, Put, Delete, Patch}));
  if (name == "tls") return {std::move(grant), gate::testing::under_tls()};
  if (name == "clear") return {std::move(grant), gate::testing::in_clear_to_anybody()};
  return {std::move(grant), gate::testing::at_the_proxy()};
}

}  // namespace

int main(int argc, char** argv) {
  const Way way = way_of(argc > 1 ? argv[1] : "git");
  for (std::string line; std::getline(std::cin, line);) {
    const gate::testing::Verdict verdict =
        gate::testing::serve_bytes({from_hex(line)}, way.grant, way.arrival);
    std::string out = verdict.lines.empty() ? "nothing" : "";
    for (std::string audit_line : verdict.lines) {
      std::ranges::replace(audit_line, ' ', ':');
      out += (out.empty() ? "" : ",") + audit_line;
    }
    for (std::size_t i = 0; i < verdict.sent.size(); ++i) {
      const auto& judged = verdict.judged.at(i);
      out += ' ' + judged.method + ' ' + judged.target + (verdict.sent[i].complete ? " yes " : " no ") +
             to_hex(verdict.sent[i].bytes);
    }
    std::puts(out.c_str());
  }
  return 0;
}
