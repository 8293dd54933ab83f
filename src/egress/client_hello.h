// A TLS ClientHello, from its bytes and not from OpenSSL's idea of them: its check lets empty names, ports,
// addresses, spaces and '*' through. Whoever wants to know the host of a connection that is not opened has
// nothing else to go by, so whatever two readers might read differently is refused.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "policy/host.h"

namespace sallyport::egress {

// Of a ClientHello with the heads of all records that it comes in. Post-quantum key shares are 1-2 KiB.
inline constexpr std::size_t kMaxClientHelloBytes = std::size_t{16} * 1024;

struct ClientHello {
  policy::HostName host;
  // encrypted_client_hello: the name above may not be the one that the upstream goes by.
  bool has_ech = false;
};

struct HandshakeRefusal {
  Error error;
  std::string host;  // "" when no name was read
};

// `extension` is the data of server_name (RFC 6066, 3): a list of exactly one entry, a host_name. Refuses
// with NoSni (no name in it), IpLiteral or BadRequest.
Result<policy::HostName> parse_server_name(std::string_view extension);

// `body` is that of the handshake message. Refuses as parse_server_name() does, and with NotTls a client that
// offers neither TLS 1.2 nor 1.3.
std::expected<ClientHello, HandshakeRefusal> parse_client_hello(std::string_view body);

// Puts a ClientHello together from a connection's first bytes, in whatever pieces they come.
class HelloReader {
 public:
  // True once the ClientHello is whole. Fails with NotTls (no TLS, or one before 1.0), TooLarge (from the
  // lengths alone, when they say so) or BadRequest; later calls are a bug then.
  Result<bool> add(std::string_view bytes);

  // Its handshake message without the head: for parse_client_hello().
  std::string_view body() const;
  // All bytes that were added; what came behind the ClientHello is in them too.
  const std::string& raw() const { return raw_; }
  std::string take_raw() { return std::move(raw_); }

 private:
  Result<bool> add_record(std::string_view data);

  std::string raw_;
  std::size_t records_end_ = 0;  // raw bytes before this one are whole records, whose data is in message_
  std::string message_;          // the handshake message so far
};

}  // namespace sallyport::egress
