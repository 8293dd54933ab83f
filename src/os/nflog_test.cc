#include "os/nflog.h"

#include <gtest/gtest.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <cstring>
#include <string>

namespace sallyport::os {
namespace {

std::string bytes(std::string_view hex) {
  std::string packed;
  for (const char c : hex) {
    if (c != ' ') packed += c;
  }
  std::string result;
  for (std::size_t i = 0; i < packed.size(); i += 2) {
    result += static_cast<char>(std::stoi(packed.substr(i, 2), nullptr, 16));
  }
  return result;
}

TEST(Nflog, ReadsTheHeadOfAPacketWithinItsBounds) {
  const std::string v4 = "45000020 00004000 40110000 0a000001 01020304";
  const std::string v6 =
      "60000000 00081140 20010db8000000000000000000000001 20010db8000000000000000000000002";
  const struct {
    const char* name;
    std::string packet;
    const char* expected;  // destination and protocol; empty: unreadable
  } cases[] = {
      {"udp", bytes(v4 + "1234 0063 000c0000"), "1.2.3.4:99 17"},
      {"ports cut off", bytes(v4 + "1234 00"), "1.2.3.4:0 17"},
      {"no ports", bytes(v4), "1.2.3.4:0 17"},
      {"icmp", bytes("45000020 00004000 40010000 0a000001 01020304 0800 0063"), "1.2.3.4:0 1"},
      {"options", bytes("46000020 00004000 40110000 0a000001 01020304 01010101 1234 0063"), "1.2.3.4:99 17"},
      {"options longer than the packet", bytes("4f000020 00004000 40110000 0a000001 01020304 1234 0063"),
       "1.2.3.4:0 17"},
      {"later fragment", bytes("45000020 00000001 40110000 0a000001 01020304 1234 0063"), "1.2.3.4:0 17"},
      {"head length below the least", bytes("44000020 00004000 40110000 0a000001 01020304 1234 0063"), ""},
      {"short head", bytes("45000020 00004000 40110000 0a000001 010203"), ""},
      {"udp over v6", bytes(v6 + "1234 0063"), "[2001:db8::2]:99 17"},
      {"v6 short", bytes(v6).substr(0, 39), ""},
      {"v6 extension",
       bytes("60000000 00080040 20010db8000000000000000000000001"
             "20010db8000000000000000000000002 1234 0063"),
       "[2001:db8::2]:0 0"},
      {"neither version", bytes("55000020 00004000 40110000 0a000001 01020304"), ""},
      {"empty", "", ""},
  };
  for (const auto& test : cases) {
    RefusedPacket report;
    const bool read = parse_packet_head(test.packet, report);
    EXPECT_EQ(read ? report.destination.text() + " " + std::to_string(report.protocol) : "", test.expected)
        << test.name;
  }
}

std::string attribute(std::uint16_t type, std::string_view payload, int lie = 0) {
  const nlattr head{static_cast<std::uint16_t>(static_cast<int>(sizeof(nlattr) + payload.size()) + lie),
                    type};
  std::string result(reinterpret_cast<const char*>(&head), sizeof head);
  result += payload;
  result.resize((result.size() + 3) & ~std::size_t{3});
  return result;
}

std::string message(std::string_view attributes, int lie = 0) {
  nlmsghdr head{};
  head.nlmsg_type = (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_PACKET;
  head.nlmsg_len =
      static_cast<std::uint32_t>(static_cast<int>(sizeof head + sizeof(nfgenmsg) + attributes.size()) + lie);
  std::string result(reinterpret_cast<const char*>(&head), sizeof head);
  result.append(sizeof(nfgenmsg), '\0');
  return result.append(attributes);
}

TEST(Nflog, ReadsMessagesWithinTheirBounds) {
  const std::string packet = bytes("45000020 00004000 40110000 0a000001 01020304 1234 0063");
  const std::string prefix = attribute(NFULA_PREFIX, "x");
  const std::string payload = attribute(NFULA_PAYLOAD, packet);
  const struct {
    const char* name;
    std::string datagram;
    std::size_t reports;
  } cases[] = {
      {"one", message(prefix + payload), 1},
      {"two", message(payload) + message(prefix + payload), 2},
      {"no payload", message(prefix), 0},
      {"message longer than the datagram", message(payload, 4), 0},
      {"message shorter than its head", message(payload, -1000), 0},
      {"attribute longer than the message", message(attribute(NFULA_PAYLOAD, packet, 4)), 0},
      {"attribute shorter than its head", message(attribute(NFULA_PREFIX, "x", -3) + payload), 0},
      {"empty payload", message(attribute(NFULA_PAYLOAD, "")), 0},
      {"cut in the message's head", message(payload).substr(0, 10), 0},
      {"nothing", "", 0},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(parse_nflog(test.datagram).size(), test.reports) << test.name;
  }
}

}  // namespace
}  // namespace sallyport::os
