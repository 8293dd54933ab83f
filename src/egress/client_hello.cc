#include "egress/client_hello.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/text.h"

namespace sallyport::egress {
namespace {

// server_name (RFC 6066, 3)
constexpr std::size_t kListHead = 2;   // the list's length
constexpr std::size_t kEntryHead = 3;  // the entry's type and length
constexpr std::uint8_t kHostNameType = 0;

// records (RFC 8446, 5.1) and handshake messages (RFC 8446, 4)
constexpr std::size_t kRecordHead = 5;  // type, version, length
constexpr std::uint8_t kHandshakeRecord = 22;
constexpr std::size_t kMessageHead = 4;  // type, length
constexpr std::uint8_t kClientHelloMessage = 1;

constexpr std::size_t kTls12 = 0x0303;
constexpr std::size_t kTls13 = 0x0304;
constexpr std::size_t kRandomBytes = 32;
constexpr std::size_t kSessionIdBytes = 32;

constexpr std::size_t kServerName = 0;
constexpr std::size_t kSupportedVersions = 43;
constexpr std::size_t kEncryptedClientHello = 0xfe0d;

std::uint8_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<std::uint8_t>(bytes[index]);
}
std::size_t u16_at(std::string_view bytes, std::size_t index) {
  return static_cast<std::size_t>(byte_at(bytes, index)) << 8U | byte_at(bytes, index + 1);
}
std::size_t u24_at(std::string_view bytes, std::size_t index) {
  return u16_at(bytes, index) << 8U | byte_at(bytes, index + 2);
}

// Takes pieces off the front. One that is not there is empty, and so is all that follows.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  bool cut() const { return cut_; }
  bool empty() const { return rest_.empty(); }

  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      cut_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::size_t number(std::size_t bytes) {
    std::size_t value = 0;
    for (const char c : take(bytes)) value = value << 8U | static_cast<std::uint8_t>(c);
    return value;
  }
  // Its length before it.
  std::string_view vector(std::size_t length_bytes) { return take(number(length_bytes)); }

 private:
  std::string_view rest_;
  bool cut_ = false;
};

// Those of the extensions that mean something here.
struct Extensions {
  std::optional<std::string_view> server_name;
  std::optional<std::string_view> supported_versions;
  bool has_ech = false;
};

Result<Extensions> read_extensions(std::string_view list) {
  Extensions found;
  std::vector<std::size_t> types;
  Fields fields(list);
  while (!fields.empty()) {
    const std::size_t type = fields.number(2);
    const std::string_view data = fields.vector(2);
    types.push_back(type);
    if (type == kServerName) found.server_name = data;
    if (type == kSupportedVersions) found.supported_versions = data;
    if (type == kEncryptedClientHello) found.has_ech = true;
  }
  if (fields.cut()) return fail(Reason::BadRequest, "an extension of the ClientHello is cut");
  // RFC 8446, 4.2. Two names are as many as there are readers.
  std::ranges::sort(types);
  const auto twice = std::ranges::adjacent_find(types);
  if (twice != types.end()) {
    return fail(Reason::BadRequest, "extension " + std::to_string(*twice) + " is in the ClientHello twice");
  }
  return found;
}

Status check_versions(std::size_t legacy_version, std::optional<std::string_view> supported) {
  const auto too_old = [] { return fail(Reason::NotTls, "the client offers neither TLS 1.2 nor 1.3"); };
  if (legacy_version >> 8U != kTls12 >> 8U) return too_old();
  if (!supported) return legacy_version >= kTls12 ? Status() : too_old();
  Fields fields(*supported);
  Fields versions(fields.vector(1));
  bool offered = false;
  while (!versions.empty()) {
    const std::size_t version = versions.number(2);
    offered = offered || version == kTls12 || version == kTls13;
  }
  if (fields.cut() || !fields.empty() || versions.cut()) {
    return fail(Reason::BadRequest, "supported_versions is malformed");
  }
  return offered ? Status() : too_old();
}

std::unexpected<HandshakeRefusal> refuse(Error error, std::string host = "") {
  return std::unexpected(HandshakeRefusal{std::move(error), std::move(host)});
}

// Of the head of a record, as much as there is: what is no TLS is refused by its first byte, since more may
// never come.
Status check_record_head(std::string_view record, bool is_first) {
  constexpr std::uint8_t kMajor = 3;
  constexpr std::uint8_t kFirstMinor = 1;  // TLS 1.0, as RFC 8446 has it in the first record
  constexpr std::uint8_t kLastMinor = 3;
  if (!record.empty() && byte_at(record, 0) != kHandshakeRecord) {
    const std::string detail = "a record of type " + std::to_string(byte_at(record, 0));
    if (is_first) return fail(Reason::NotTls, detail + " where a ClientHello begins");
    return fail(Reason::BadRequest, detail + " in the middle of a ClientHello");
  }
  if ((record.size() > 1 && byte_at(record, 1) != kMajor) ||
      (record.size() > 2 && (byte_at(record, 2) < kFirstMinor || byte_at(record, 2) > kLastMinor))) {
    return fail(Reason::NotTls, "a record of no version from TLS 1.0 to 1.3");
  }
  return {};
}

std::unexpected<Error> too_large() {
  return fail(Reason::TooLarge, "the ClientHello is larger than 16 KiB");
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

std::expected<ClientHello, HandshakeRefusal> parse_client_hello(std::string_view body) {
  Fields fields(body);
  const std::size_t legacy_version = fields.number(2);
  fields.take(kRandomBytes);
  const std::string_view session_id = fields.vector(1);
  const std::string_view ciphers = fields.vector(2);
  const std::string_view compressions = fields.vector(1);
  // A client of TLS 1.2 may have none (RFC 5246, 7.4.1.2).
  const std::string_view list = fields.empty() ? std::string_view() : fields.vector(2);
  if (fields.cut() || !fields.empty() || session_id.size() > kSessionIdBytes || ciphers.empty() ||
      ciphers.size() % 2 != 0 || compressions.empty()) {
    return refuse({Reason::BadRequest, "the ClientHello is malformed"});
  }
  auto extensions = read_extensions(list);
  if (!extensions) return refuse(std::move(extensions).error());

  auto host = extensions->server_name ? parse_server_name(*extensions->server_name)
                                      : fail(Reason::NoSni, "the ClientHello has no server_name");
  Status versions = check_versions(legacy_version, extensions->supported_versions);
  if (!versions) return refuse(std::move(versions).error(), host ? host->str() : "");
  if (!host) return refuse(std::move(host).error());
  return ClientHello{*std::move(host), extensions->has_ech};
}

Result<bool> HelloReader::add(std::string_view bytes) {
  raw_ += bytes;
  for (;;) {
    // Not past the limit, or the outcome would depend on how many bytes came together.
    const std::string_view rest = std::string_view(raw_).substr(0, kMaxClientHelloBytes).substr(records_end_);
    if (Status head = check_record_head(rest, message_.empty()); !head) return fail(std::move(head));
    if (rest.size() >= kRecordHead) {
      const std::size_t size = kRecordHead + u16_at(rest, 3);
      if (size == kRecordHead) return fail(Reason::BadRequest, "an empty record in a ClientHello");
      if (records_end_ + size > kMaxClientHelloBytes) return too_large();
      if (rest.size() >= size) {
        auto whole = add_record(rest.substr(kRecordHead, size - kRecordHead));
        if (!whole || *whole) return whole;
        records_end_ += size;
        continue;
      }
    }
    if (raw_.size() >= kMaxClientHelloBytes) return too_large();
    return false;
  }
}

Result<bool> HelloReader::add_record(std::string_view data) {
  message_ += data;
  if (byte_at(message_, 0) != kClientHelloMessage) {
    return fail(Reason::NotTls, "the first message is no ClientHello");
  }
  if (message_.size() < kMessageHead) return false;
  const std::size_t size = kMessageHead + u24_at(message_, 1);
  if (size > kMaxClientHelloBytes) return too_large();
  // RFC 8446, 5.1: no message shares a record with one under other keys, as all that follow are.
  if (message_.size() > size) return fail(Reason::BadRequest, "bytes behind the ClientHello in its record");
  return message_.size() == size;
}

std::string_view HelloReader::body() const {
  return std::string_view(message_).substr(kMessageHead);
}

}  // namespace sallyport::egress
