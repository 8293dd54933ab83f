// For tests: a TLS client on OpenSSL, blocking, that is as badly behaved as it is told to be.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"

namespace sallyport::egress {

// A connected pair: the client's end blocks, but no longer than a test may take.
inline std::pair<Fd, Fd> test_sockets() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return {Fd(ends[0]), Fd(ends[1])};
}

class TestClient {
 public:
  struct Options {
    std::string sni = "api.ok.test";  // "": none
    int min_version = TLS1_2_VERSION;
    int max_version = 0;        // 0: the newest
    std::string alpn = "";      // length-prefixed, as on the wire
    X509* authority = nullptr;  // verify against it; nullptr: do not verify
    std::string groups = "";    // of key exchange, the first one being sent at once
  };

  // `socket` is borrowed.
  TestClient(int socket, const Options& options) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_security_level(context_.get(), 0);  // TLS 1.0 needs SHA-1
    SSL_CTX_set_min_proto_version(context_.get(), options.min_version);
    SSL_CTX_set_max_proto_version(context_.get(), options.max_version);
    if (options.authority != nullptr) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), options.authority);
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    }
    ssl_.reset(SSL_new(context_.get()));
    if (!options.sni.empty()) {
      SSL_set_tlsext_host_name(ssl_.get(), options.sni.c_str());
      SSL_set1_host(ssl_.get(), options.sni.c_str());
    }
    if (!options.groups.empty()) SSL_set1_groups_list(ssl_.get(), options.groups.c_str());
    SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(options.alpn.data()),
                        static_cast<unsigned>(options.alpn.size()));
    SSL_set_fd(ssl_.get(), socket);
    SSL_set_connect_state(ssl_.get());
  }

  bool connect() {
    ERR_clear_error();
    if (SSL_connect(ssl_.get()) == 1) return true;
    // The alerts of TLS are OpenSSL's reasons from 1000 on (SSL_AD_REASON_OFFSET).
    const int reason = ERR_GET_REASON(ERR_get_error());
    alert_ = reason > SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : 0;
    return false;
  }
  // The alert by which the server ended the handshake; 0: it just went.
  int alert() const { return alert_; }

  bool write(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) ==
           static_cast<int>(bytes.size());
  }
  // Everything until the server ends.
  std::string read_all() {
    std::string all;
    char buffer[4096];
    for (int got; (got = SSL_read(ssl_.get(), buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  void end() { SSL_shutdown(ssl_.get()); }

  SSL* ssl() { return ssl_.get(); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  int alert_ = 0;
};

// The first flight of such a client: a ClientHello in one record.
inline std::string client_hello_bytes(const TestClient::Options& options) {
  TestClient client(-1, options);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(client.ssl(), in, out);
  client.connect();
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace sallyport::egress
