// A name server for tests, on loopback, over UDP and TCP. It knows what a test tells it, and says it as
// wrongly as the test likes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "net/task.h"
#include "net/worker.h"
#include "policy/address.h"

namespace sallyport::net::test {

inline constexpr char kTypeCname = 5;

struct DnsRecord {
  std::string owner;
  std::string value;  // an address; anything else is the name that a CNAME leads to

  char type() const {
    const auto address = policy::IpAddress::parse(value);
    if (!address) return kTypeCname;
    return address->family == policy::Family::V4 ? 1 : 28;
  }
};

struct DnsReply {
  enum class Code : std::uint8_t { Good = 0, ServFail = 2, NxDomain = 3, Refused = 5 };

  std::string id;  // two bytes
  std::string name;
  char type = 0;
  Code code = Code::Good;
  bool truncated = false;
  bool over_tcp = false;
  bool from_elsewhere = false;  // sent from another port than was asked
  std::vector<DnsRecord> answers;

  static std::string wire_name(std::string_view name) {
    std::string wire;
    while (!name.empty()) {
      const std::string_view label = name.substr(0, name.find('.'));
      wire += static_cast<char>(label.size());
      wire += label;
      name.remove_prefix(std::min(name.size(), label.size() + 1));
    }
    return wire + '\0';
  }
  static std::string u16(std::size_t value) {
    return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)};
  }

  std::string bytes() const {
    std::string out = id + (truncated ? '\x83' : '\x81') + static_cast<char>(0x80 | static_cast<int>(code));
    out += u16(1) + u16(answers.size()) + u16(0) + u16(0);
    out += wire_name(name) + u16(static_cast<std::size_t>(type)) + u16(1);
    for (const DnsRecord& answer : answers) {
      std::string data;
      if (const auto address = policy::IpAddress::parse(answer.value)) {
        const std::size_t size = address->family == policy::Family::V4 ? 4 : 16;
        data.assign(reinterpret_cast<const char*>(address->bytes.data()), size);
      } else {
        data = wire_name(answer.value);
      }
      out += answer.owner == name ? std::string("\xc0\x0c") : wire_name(answer.owner);
      out +=
          u16(static_cast<std::size_t>(answer.type())) + u16(1) + u16(0) + u16(60) + u16(data.size()) + data;
    }
    return out;
  }
};

class NameServer {
 public:
  explicit NameServer(Worker& worker) : worker_(worker), udp_(worker.io()), tcp_(worker.io()) {
    open();
    worker.spawn("name server", serve_udp());
    worker.spawn("name server", serve_tcp());
  }

  policy::PinnedAddress address;
  // Of both families, and names that it leads on to. What is not here gets NXDOMAIN.
  std::map<std::string, std::vector<std::string>> records;
  // Turns the good reply into what is sent, if anything.
  std::function<std::vector<DnsReply>(const DnsReply&)> say = [](const DnsReply& good) {
    return std::vector{good};
  };
  std::vector<std::string> asked;
  std::vector<std::string> ids;  // of the questions over UDP
  std::vector<std::uint16_t> ports;
  int tcp_questions = 0;

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;

  // One port for both protocols.
  void open() {
    for (int tries = 0; tries < 16; ++tries) {
      Fd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      Fd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      auto* here = reinterpret_cast<sockaddr*>(&at);
      socklen_t size = sizeof at;
      if (::bind(udp.get(), here, size) != 0 || ::getsockname(udp.get(), here, &size) != 0 ||
          ::bind(tcp.get(), here, size) != 0 || ::listen(tcp.get(), 4) != 0) {
        continue;
      }
      address = {policy::IpAddress::parse("127.0.0.1").value(), ntohs(at.sin_port)};
      udp_.assign(udp.release());
      tcp_.assign(tcp.release());
      return;
    }
    ADD_FAILURE() << "no port for a name server";
  }

  Task<> serve_udp() {
    for (;;) {
      co_await udp_.async_wait(Descriptor::wait_read, boost::asio::use_awaitable);
      std::array<char, 512> buffer{};
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const auto got = ::recvfrom(udp_.native_handle(), buffer.data(), buffer.size(), 0,
                                  reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 17) continue;
      const DnsReply good = reply_to({buffer.data(), static_cast<std::size_t>(got)});
      ids.push_back(good.id);
      ports.push_back(ntohs(from.sin_port));
      for (const DnsReply& reply : say(good)) {
        const Fd other(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        const std::string bytes = reply.bytes();
        ::sendto(reply.from_elsewhere ? other.get() : udp_.native_handle(), bytes.data(), bytes.size(), 0,
                 reinterpret_cast<sockaddr*>(&from), size);
      }
    }
  }

  // One connection after the other; each asks what it likes.
  Task<> serve_tcp() {
    for (;;) {
      co_await tcp_.async_wait(Descriptor::wait_read, boost::asio::use_awaitable);
      const int accepted = ::accept4(tcp_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (accepted < 0) continue;
      worker_.spawn("name server's connection", serve_connection(Descriptor(worker_.io(), accepted)));
    }
  }

  Task<> serve_connection(Descriptor connection) {
    std::string unread;
    for (;;) {
      co_await connection.async_wait(Descriptor::wait_read, boost::asio::use_awaitable);
      std::array<char, 512> buffer{};
      const auto got = ::read(connection.native_handle(), buffer.data(), buffer.size());
      if (got <= 0) co_return;
      unread.append(buffer.data(), static_cast<std::size_t>(got));
      while (unread.size() > 18) {
        const std::size_t length = static_cast<std::size_t>(static_cast<unsigned char>(unread[1]));
        if (unread.size() < length + 2) break;
        DnsReply good = reply_to(std::string_view(unread).substr(2, length));
        unread.erase(0, length + 2);
        good.over_tcp = true;
        ++tcp_questions;
        for (const DnsReply& reply : say(good)) {
          const std::string bytes = reply.bytes();
          const std::string framed = DnsReply::u16(bytes.size()) + bytes;
          EXPECT_EQ(::write(connection.native_handle(), framed.data(), framed.size()),
                    static_cast<ssize_t>(framed.size()));
        }
      }
    }
  }

  DnsReply reply_to(std::string_view query) {
    DnsReply reply;
    reply.id = query.substr(0, 2);
    std::size_t at = 12;
    while (query[at] != 0) {
      const auto length = static_cast<std::size_t>(static_cast<unsigned char>(query[at]));
      if (!reply.name.empty()) reply.name += '.';
      reply.name += query.substr(at + 1, length);
      at += length + 1;
    }
    reply.type = query[at + 2];
    asked.push_back(reply.name);
    if (!records.contains(reply.name)) reply.code = DnsReply::Code::NxDomain;
    add_records(reply.name, reply, 0);
    return reply;
  }

  void add_records(const std::string& owner, DnsReply& reply, int depth) {
    constexpr int kDeepest = 20;  // where a circle of aliases ends
    const auto found = records.find(owner);
    if (found == records.end() || depth == kDeepest) return;
    for (const std::string& value : found->second) {
      const DnsRecord record{owner, value};
      const bool alias = record.type() == kTypeCname;
      if (!alias && record.type() != reply.type) continue;
      reply.answers.push_back(record);
      if (alias) add_records(value, reply, depth + 1);
    }
  }

  Worker& worker_;
  Descriptor udp_;
  Descriptor tcp_;
};

}  // namespace sallyport::net::test
