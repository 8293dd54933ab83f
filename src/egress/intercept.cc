#include "egress/intercept.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "egress/client_hello.h"

namespace sallyport::egress {
namespace {

// Of key exchange. Not the finite-field groups that OpenSSL would take too: the client chooses, and one of
// ffdhe8192 costs us a quarter of a second.
constexpr const char* kGroups = "X25519:P-256:P-384";
constexpr std::string_view kHttp11 = "http/1.1";

// One length-prefixed name after the other (RFC 7301, 3.1); OpenSSL has checked the lengths.
bool offers_http11(std::string_view protocols) {
  while (!protocols.empty()) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(protocols.front()));
    if (protocols.substr(1, length) == kHttp11) return true;
    protocols.remove_prefix(std::min(length + 1, protocols.size()));
  }
  return false;
}

std::string_view as_text(const unsigned char* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace

// What the callbacks of one handshake find and leave; the SSL's app data points to it meanwhile.
struct Interceptor::Handshake {
  Judge judge;
  std::optional<policy::HostName> host;
  std::optional<Error> refusal;
  std::size_t bytes_since_hello = 0;

  void refuse(Error error) {
    if (!refusal) refusal = std::move(error);
  }
};

struct Interceptor::Callbacks {
  static Handshake* handshake_of(const SSL* ssl) { return static_cast<Handshake*>(SSL_get_app_data(ssl)); }

  static Result<policy::HostName> server_name(SSL* ssl) {
    const unsigned char* bytes = nullptr;
    std::size_t size = 0;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &size) != 1) {
      return fail(Reason::NoSni, "the ClientHello has no server_name");
    }
    return parse_server_name(as_text(bytes, size));
  }

  // Called for every ClientHello: after a HelloRetryRequest a second one comes (RFC 8446, 4.1.2).
  static Status judge_hello(SSL* ssl, Interceptor& self, Handshake& handshake) {
    auto host = server_name(ssl);
    if (!host) return fail(std::move(host));
    if (handshake.host && *handshake.host != *host) {
      return fail(Reason::SniMismatch, "the second ClientHello names another host");
    }
    handshake.host = *host;
    if (Status judged = handshake.judge(*host); !judged) return judged;
    const auto leaf = self.leaves_.leaf_for(*host, std::chrono::steady_clock::now());
    if (!leaf) return std::unexpected(leaf.error());
    if (SSL_use_certificate(ssl, (*leaf)->certificate.get()) != 1 ||
        SSL_use_PrivateKey(ssl, (*leaf)->key.get()) != 1) {
      return fail(Reason::Internal, "using a leaf: " + net::take_openssl_errors());
    }
    return {};
  }

  static int client_hello(SSL* ssl, int* alert, void* argument) {
    Handshake& handshake = *handshake_of(ssl);
    handshake.bytes_since_hello = 0;
    const Status status = judge_hello(ssl, *static_cast<Interceptor*>(argument), handshake);
    if (status) return SSL_CLIENT_HELLO_SUCCESS;
    const Reason reason = status.error().reason;
    const bool ours = reason == Reason::Internal || reason == Reason::TooMany;
    *alert = ours ? SSL_AD_INTERNAL_ERROR : SSL_AD_UNRECOGNIZED_NAME;
    handshake.refuse(status.error());
    return SSL_CLIENT_HELLO_ERROR;
  }

  static int select_protocol(SSL* ssl, const unsigned char** out, unsigned char* out_bytes,
                             const unsigned char* offered, unsigned int offered_bytes, void* /*argument*/) {
    if (!offers_http11(as_text(offered, offered_bytes))) {
      handshake_of(ssl)->refuse({Reason::BadRequest, "the client's ALPN does not offer http/1.1"});
      return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    *out = reinterpret_cast<const unsigned char*>(kHttp11.data());
    *out_bytes = static_cast<unsigned char>(kHttp11.size());
    return SSL_TLSEXT_ERR_OK;
  }

  // OpenSSL would take a ClientHello of 128 KiB. It shows us the head of every record that comes in, so count
  // them, and past the limit have it believe that the client has ended.
  static void record_seen(int is_written, int /*version*/, int content_type, const void* bytes,
                          std::size_t size, SSL* ssl, void* /*argument*/) {
    constexpr std::size_t kHeadBytes = 5;  // RFC 8446, 5.1: type, version, length
    if (is_written != 0 || content_type != SSL3_RT_HEADER || size != kHeadBytes) return;
    Handshake* handshake = handshake_of(ssl);
    if (handshake == nullptr) return;  // the handshake is over
    const auto* head = static_cast<const unsigned char*>(bytes);
    if (head[1] != SSL3_VERSION_MAJOR) return;  // no TLS at all, as OpenSSL is about to find
    handshake->bytes_since_hello += static_cast<std::size_t>(head[3]) << 8U | head[4];
    if (handshake->bytes_since_hello <= kMaxClientHelloBytes) return;
    handshake->refuse({Reason::TooLarge, "the ClientHello is larger than 16 KiB"});
    SSL_set_shutdown(ssl, SSL_RECEIVED_SHUTDOWN);
  }
};

Interceptor::Interceptor(net::Worker& worker, net::KeyPair ca)
    : worker_(worker), leaves_(std::move(ca)), context_(SSL_CTX_new(TLS_server_method())) {}

Interceptor::~Interceptor() = default;

Result<std::unique_ptr<Interceptor>> Interceptor::make(net::Worker& worker, net::KeyPair ca) {
  std::unique_ptr<Interceptor> made(new Interceptor(worker, std::move(ca)));
  SSL_CTX* context = made->context_.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_num_tickets(context, 0) != 1 || SSL_CTX_set1_groups_list(context, kGroups) != 1) {
    return fail(Reason::Internal, "making the TLS context: " + net::take_openssl_errors());
  }
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_client_hello_cb(context, &Callbacks::client_hello, made.get());
  SSL_CTX_set_alpn_select_cb(context, &Callbacks::select_protocol, nullptr);
  SSL_CTX_set_msg_callback(context, &Callbacks::record_seen);
  return made;
}

net::Task<std::expected<Intercepted, HandshakeRefusal>> Interceptor::accept(PeekedHello peeked, Judge judge) {
  Handshake handshake;
  handshake.judge = std::move(judge);
  auto accepted = co_await net::accept_tls(worker_, *context_, &handshake, std::move(peeked.socket),
                                           peeked.until - net::Clock::now(), std::move(peeked.bytes));
  const std::string name = handshake.host ? handshake.host->str() : "";
  if (!accepted) {
    Error error = handshake.refusal ? *std::move(handshake.refusal) : std::move(accepted).error();
    co_return std::unexpected(HandshakeRefusal{std::move(error), name});
  }
  SSL_set_app_data(accepted->ssl, nullptr);  // the stream outlives the handshake
  co_return Intercepted{std::move(accepted->stream), *std::move(handshake.host)};
}

}  // namespace sallyport::egress
