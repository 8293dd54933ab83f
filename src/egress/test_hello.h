// For tests: ClientHellos byte by byte, as malformed as one likes, and cut in pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sallyport::egress::test {

inline std::string u8(std::size_t value) {
  return std::string(1, static_cast<char>(value & 0xFFU));
}
inline std::string u16(std::size_t value) {
  return u8(value >> 8U) + u8(value);
}
inline std::string u24(std::size_t value) {
  return u8(value >> 16U) + u16(value);
}

// The data of server_name: an entry, a list of them.
inline std::string entry(std::string_view name, std::size_t type = 0) {
  return u8(type) + u16(name.size()) + std::string(name);
}
inline std::string list(const std::string& entries) {
  return u16(entries.size()) + entries;
}

inline std::string extension(std::size_t type, const std::string& data) {
  return u16(type) + u16(data.size()) + data;
}
inline std::string sni(std::string_view name) {
  return extension(0, list(entry(name)));
}
inline std::string versions(const std::vector<std::size_t>& offered) {
  std::string bytes;
  for (const std::size_t version : offered) bytes += u16(version);
  return extension(43, u8(bytes.size()) + bytes);
}

// The body of a ClientHello's message.
inline std::string hello_body(const std::string& extensions, std::size_t version = 0x0303) {
  return u16(version) + std::string(32, '\x5a') + u8(0) + u16(4) + "\x13\x01\xc0\x2f" + u8(1) + u8(0) +
         list(extensions);
}
inline std::string message(const std::string& body, std::size_t type = 1) {
  return u8(type) + u24(body.size()) + body;
}

inline std::string record(std::string_view data, std::size_t version = 0x0301) {
  return u8(22) + u16(version) + u16(data.size()) + std::string(data);
}

// In pieces of 1 to `largest` bytes.
inline std::vector<std::string> cut(std::string_view bytes, std::size_t largest, std::mt19937& random) {
  std::vector<std::string> pieces;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(random() % largest + 1, bytes.size());
    pieces.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return pieces;
}
inline std::string in_records(std::string_view data, std::size_t largest, std::mt19937& random) {
  std::string records;
  for (const std::string& piece : cut(data, largest, random)) records += record(piece);
  return records;
}

}  // namespace sallyport::egress::test
