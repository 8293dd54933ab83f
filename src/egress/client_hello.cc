#include "egress/client_hello.h"

#include <cstdint>

#include "base/text.h"

namespace sallyport::egress {
namespace {

constexpr std::size_t kListHead = 2;   // the list's length
constexpr std::size_t kEntryHead = 3;  // the entry's type and length
constexpr std::uint8_t kHostNameType = 0;

std::uint8_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<std::uint8_t>(bytes[index]);
}
std::size_t u16_at(std::string_view bytes, std::size_t index) {
  return static_cast<std::size_t>(byte_at(bytes, index)) << 8U | byte_at(bytes, index + 1);
}

}  // namespace

Result<policy::HostName> parse_server_name(std::string_view extension) {
  if (extension.size() < kListHead || u16_at(extension, 0) != extension.size() - kListHead) {
    return fail(Reason::BadRequest, "the server_name extension has another length than it says");
  }
  const std::string_view list = extension.substr(kListHead);
  if (list.empty()) return fail(Reason::NoSni, "the server_name list is empty");
  if (list.size() < kEntryHead || u16_at(list, 1) > list.size() - kEntryHead) {
    return fail(Reason::BadRequest, "an entry of server_name is cut");
  }
  if (byte_at(list, 0) != kHostNameType) {
    return fail(Reason::BadRequest, "an entry of server_name is no host name");
  }
  const std::string_view name = list.substr(kEntryHead);
  if (u16_at(list, 1) != name.size()) return fail(Reason::BadRequest, "server_name has more than one entry");
  if (name.empty()) return fail(Reason::NoSni, "the name in server_name is empty");
  auto host = policy::HostName::parse(name);
  if (!host) host.error().detail += ": SNI \"" + escaped(name) + "\"";
  return host;
}

}  // namespace sallyport::egress
