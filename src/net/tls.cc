#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <utility>

#include "net/certificate.h"
#include "net/readiness.h"

namespace sallyport::net {
namespace {

// ALPN's wire form: a length before each name.
constexpr unsigned char kAlpn[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr std::string_view kProtocol = "http/1.1";

// The systems' bundles of roots. One file, read now: a hashed folder would be read while verifying, when the
// process may not open files any more.
constexpr const char* kRootBundles[] = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian and its children, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora and its children
    "/etc/ssl/ca-bundle.pem",              // SUSE
};

constexpr std::size_t kReadAheadBytes = 64 * 1024;

struct SslFree {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslHandle = std::unique_ptr<SSL, SslFree>;

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioHandle = std::unique_ptr<BIO, BioFree>;

class TlsStream final : public Stream {
 public:
  TlsStream(Worker& worker, SslHandle ssl, Fd socket, Peer peer)
      : socket_(worker, std::move(socket), peer), ssl_(std::move(ssl)) {}

  // Without this OpenSSL would take sessions back when a connection is closed without ceremony.
  ~TlsStream() override { SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  SSL* ssl() { return ssl_.get(); }

  // Resumes one of the sessions, and keeps those that come. Owners: whoever shares them among connections,
  // and each of these, since tickets come at any time.
  void use_sessions(std::shared_ptr<TlsSessions> sessions) {
    sessions_ = std::move(sessions);
    if (sessions_ == nullptr) return;
    SSL_SESSION* session = sessions_->take();
    if (session == nullptr) return;
    // A session that does not fit is a full handshake.
    if (SSL_set_session(ssl_.get(), session) != 1) ERR_clear_error();
    SSL_SESSION_free(session);
  }

  // Before anything is read from the socket. OpenSSL copies the bytes.
  Status read_first(std::string_view bytes) {
    if (bytes.empty()) return {};
    BioHandle memory(BIO_new(BIO_s_mem()));
    std::size_t written = 0;
    if (!memory || BIO_write_ex(memory.get(), bytes.data(), bytes.size(), &written) != 1) {
      return fail(Reason::Internal, "BIO_write_ex: " + take_openssl_errors());
    }
    SSL_set0_rbio(ssl_.get(), memory.release());
    reads_memory_ = true;
    return {};
  }

  // Called by OpenSSL, in the middle of its work.
  void got_session(SSL_SESSION& session) {
    if (sessions_ != nullptr) sessions_->put(session);
  }
  void got_message() {
    // OpenSSL goes on as long as messages come, and nobody else runs meanwhile. The next read is the last.
    if (++messages_ > kMaxTlsMessages) ::shutdown(socket_.fd(), SHUT_RDWR);
  }

  // Runs SSL_connect or SSL_accept to its end. A failure of TLS itself (not of the connection) is told with
  // `tls_reason`.
  Task<Status> handshake(int (*step)(SSL*), Reason tls_reason) {
    for (;;) {
      if (auto status = socket_.usable(); !status) co_return status;
      ERR_clear_error();
      const int done = step(ssl_.get());
      if (done == 1) co_return Status();
      const int error = SSL_get_error(ssl_.get(), done);
      if (error == SSL_ERROR_SSL && !peer_left()) {
        const bool is_refused = tls_reason == Reason::NotTls && certificate_refused();
        co_return fail(is_refused ? Reason::TlsPinned : tls_reason, handshake_problem());
      }
      if (auto status = co_await wait_for(error, errno); !status) co_return status;
    }
  }

  Task<Status> wait_readable() override {
    for (;;) {
      if (auto status = socket_.usable(); !status) co_return status;
      char byte = 0;
      ERR_clear_error();
      const int got = SSL_peek(ssl_.get(), &byte, 1);
      if (got > 0) co_return Status();
      const int error = SSL_get_error(ssl_.get(), got);
      if (!is_wait(error)) co_return Status();  // an end or an error: read_some() tells which
      if (auto status = co_await wait_for(error, 0); !status) co_return status;
    }
  }

  Task<Result<std::size_t>> read_some(std::span<char> into) override {
    for (;;) {
      if (auto status = socket_.usable(); !status) co_return fail(std::move(status));
      std::size_t got = 0;
      ERR_clear_error();
      const int done = SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
      if (done == 1) {
        messages_ = 0;
        got += take_buffered(into.subspan(got));
        if (socket_.moved()) co_await socket_.let_others_run();
        co_return got;
      }
      const int error = SSL_get_error(ssl_.get(), done);
      if (error == SSL_ERROR_ZERO_RETURN) co_return std::size_t{0};  // close_notify
      if (auto status = co_await wait_for(error, errno); !status) co_return fail(std::move(status));
    }
  }

  Task<Status> write_all(std::string_view bytes) override {
    while (!bytes.empty()) {
      if (auto status = socket_.usable(); !status) co_return status;
      if (write_failed_) co_return socket_.gone("an earlier write failed");
      std::size_t sent = 0;
      ERR_clear_error();
      const int done = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent);
      if (done == 1) {
        bytes.remove_prefix(sent);
        if (socket_.moved()) co_await socket_.let_others_run();
        continue;
      }
      if (auto status = co_await wait_to_write(SSL_get_error(ssl_.get(), done), errno); !status) {
        co_return status;
      }
    }
    co_return Status();
  }

  Task<Status> shutdown_write() override {
    for (;;) {
      if (auto status = socket_.usable(); !status) co_return status;
      if (write_failed_) co_return socket_.gone("an earlier write failed");
      ERR_clear_error();
      const int done = SSL_shutdown(ssl_.get());
      if (done >= 0) co_return Status();
      if (auto status = co_await wait_to_write(SSL_get_error(ssl_.get(), done), errno); !status) {
        co_return status;
      }
    }
  }

  void stop_waiting() noexcept override { socket_.stop_waiting(); }
  void close() noexcept override { socket_.close(); }

  bool quiet() override {
    if (write_failed_ || !socket_.usable()) return false;
    char byte = 0;
    ERR_clear_error();
    const int got = SSL_peek(ssl_.get(), &byte, 1);
    return got <= 0 && SSL_get_error(ssl_.get(), got) == SSL_ERROR_WANT_READ;
  }

  void limit_idle(Clock::duration limit) override { socket_.limit_idle(limit); }
  void limit_total(Clock::duration limit) override { socket_.limit_total(limit); }
  void no_limit() override { socket_.no_limit(); }

 private:
  // Records that were read ahead: taken together they cost every hop behind us one call instead of one each.
  // An end or an error is left for the next read.
  std::size_t take_buffered(std::span<char> into) {
    std::size_t taken = 0;
    while (taken < into.size() && SSL_has_pending(ssl_.get()) == 1) {
      std::size_t got = 0;
      if (SSL_read_ex(ssl_.get(), into.data() + taken, into.size() - taken, &got) != 1) break;
      taken += got;
    }
    return taken;
  }

  static bool is_wait(int error) { return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE; }

  // Waits for what OpenSSL asks for; everything else is the connection's end. Empties the error queue before
  // it waits: the queue is the thread's, and other connections run meanwhile.
  Task<Status> wait_for(int error, int system_error) {
    if (error == SSL_ERROR_WANT_READ && reads_memory_) return read_socket();
    if (error == SSL_ERROR_WANT_READ) return socket_.wait(Readiness::For::Reading);
    if (error == SSL_ERROR_WANT_WRITE) return socket_.wait(Readiness::For::Writing);
    return failed(error, system_error);
  }

  // The bytes of read_first() are used up, which no handshake ends without: it needs the client's answer.
  Task<Status> read_socket() {
    reads_memory_ = false;
    BIO* socket = SSL_get_wbio(ssl_.get());
    BIO_up_ref(socket);
    SSL_set0_rbio(ssl_.get(), socket);
    co_return Status();
  }

  Task<Status> wait_to_write(int error, int system_error) {
    write_failed_ = !is_wait(error);
    return wait_for(error, system_error);
  }

  Task<Status> failed(int error, int system_error) {
    std::string what = take_openssl_errors();
    if (error == SSL_ERROR_SYSCALL && system_error != 0) what = errno_text(system_error);
    if (what.empty()) what = "ended without a word";
    co_return socket_.gone("TLS: " + what);
  }

  // OpenSSL calls a FIN in the middle of a handshake an error of TLS.
  static bool peer_left() {
    const unsigned long error = ERR_peek_error();
    return ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  }

  // By one of the alerts that are for it (RFC 8446, 6.2).
  static bool certificate_refused() {
    const unsigned long error = ERR_peek_error();
    if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
    switch (ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET) {
      case SSL_AD_BAD_CERTIFICATE:
      case SSL_AD_UNSUPPORTED_CERTIFICATE:
      case SSL_AD_CERTIFICATE_REVOKED:
      case SSL_AD_CERTIFICATE_EXPIRED:
      case SSL_AD_CERTIFICATE_UNKNOWN:
      case SSL_AD_UNKNOWN_CA:
        return true;
      default:
        return false;
    }
  }

  std::string handshake_problem() {
    std::string errors = take_openssl_errors();
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict == X509_V_OK) return errors;
    return std::string("certificate: ") + X509_verify_cert_error_string(verdict);
  }

  Readiness socket_;
  SslHandle ssl_;
  bool write_failed_ = false;
  bool reads_memory_ = false;
  std::shared_ptr<TlsSessions> sessions_;
  int messages_ = 0;  // of the handshake protocol, since data came
};

TlsStream& stream_of(const SSL* ssl) {
  return *static_cast<TlsStream*>(SSL_get_app_data(ssl));
}

// 0: OpenSSL keeps its reference to itself.
int on_new_session(SSL* ssl, SSL_SESSION* session) {
  stream_of(ssl).got_session(*session);
  return 0;
}

void on_message(int is_ours, int /*version*/, int content_type, const void* /*bytes*/, std::size_t /*size*/,
                SSL* ssl, void* /*argument*/) {
  if (is_ours == 0 && content_type == SSL3_RT_HANDSHAKE) stream_of(ssl).got_message();
}

Result<std::unique_ptr<TlsStream>> make_tls_stream(Worker& worker, SSL_CTX& context, Fd socket, Peer peer) {
  SslHandle ssl(SSL_new(&context));
  if (!ssl || SSL_set_fd(ssl.get(), socket.get()) != 1) {
    return fail(Reason::Internal, "SSL_new: " + take_openssl_errors());
  }
  SSL_set_mode(ssl.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
  // One read(2) for several records; the buffer is released while the connection is idle.
  SSL_set_read_ahead(ssl.get(), 1);
  SSL_set_default_read_buffer_len(ssl.get(), kReadAheadBytes);
  SSL_set_options(ssl.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  return std::make_unique<TlsStream>(worker, std::move(ssl), std::move(socket), peer);
}

Status name_host(SSL& ssl, const policy::HostName& host) {
  SSL_set_hostflags(&ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const bool done =
      SSL_set1_host(&ssl, host.str().c_str()) == 1 && SSL_set_tlsext_host_name(&ssl, host.str().c_str()) == 1;
  if (!done) return fail(Reason::Internal, "TLS host name: " + take_openssl_errors());
  return {};
}

// A server that does not know ALPN chooses nothing, which is as good.
Status check_protocol(SSL& ssl) {
  const unsigned char* name = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(&ssl, &name, &length);
  const std::string_view chosen(reinterpret_cast<const char*>(name), length);
  if (chosen.empty() || chosen == kProtocol) return {};
  return fail(Reason::UpstreamTls, "the upstream chose a protocol that was not offered");
}

Status trust_pem(SSL_CTX& context, std::string_view pem) {
  const BioHandle bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (!bio) return fail(Reason::Internal, "BIO_new_mem_buf");
  X509_STORE* store = SSL_CTX_get_cert_store(&context);
  int certificates = 0;
  for (;;) {
    const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!certificate) break;
    if (X509_STORE_add_cert(store, certificate.get()) != 1) {
      return fail(Reason::Internal, "CA certificate: " + take_openssl_errors());
    }
    ++certificates;
  }
  // The end of the text is an error to OpenSSL too, the only one that is none.
  const unsigned long error = ERR_peek_last_error();
  const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  const std::string text = take_openssl_errors();
  if (certificates == 0 || !at_end) return fail(Reason::Internal, "CA certificates in PEM: " + text);
  return {};
}

Status trust_system_roots(SSL_CTX& context) {
  for (const char* bundle : kRootBundles) {
    if (SSL_CTX_load_verify_file(&context, bundle) == 1) return {};
    ERR_clear_error();
  }
  return fail(Reason::Internal, "the system's CA certificates are not found; install ca-certificates");
}

}  // namespace

void SslContextFree::operator()(SSL_CTX* context) const {
  SSL_CTX_free(context);
}

TlsSessions::~TlsSessions() {
  for (const Kept& kept : sessions_) SSL_SESSION_free(kept.session);
}

void TlsSessions::put(SSL_SESSION& session) {
  const unsigned char* ticket = nullptr;
  std::size_t ticket_bytes = 0;
  SSL_SESSION_get0_ticket(&session, &ticket, &ticket_bytes);
  if (ticket_bytes > kMaxTicketBytes || SSL_SESSION_is_resumable(&session) != 1) return;
  if (sessions_.size() == kMaxSessions) {
    SSL_SESSION_free(sessions_.front().session);
    sessions_.pop_front();
  }
  SSL_SESSION_up_ref(&session);
  sessions_.push_back({&session, Clock::now()});
}

SSL_SESSION* TlsSessions::take() {
  while (!sessions_.empty()) {
    const Kept newest = sessions_.back();
    sessions_.pop_back();
    const X509* certificate = SSL_SESSION_get0_peer(newest.session);
    const bool in_date = certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0;
    if (in_date && Clock::now() - newest.since < kLife) {
      // TLS 1.2 sends no new one when it resumes.
      if (SSL_SESSION_get_protocol_version(newest.session) < TLS1_3_VERSION) {
        SSL_SESSION_up_ref(newest.session);
        sessions_.push_back(newest);
      }
      return newest.session;
    }
    SSL_SESSION_free(newest.session);
  }
  return nullptr;
}

Result<SslContext> make_client_context(std::string_view ca_pem) {
  SslContext context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_alpn_protos(context.get(), kAlpn, sizeof kAlpn) != 0) {
    return fail(Reason::Internal, "SSL_CTX_new: " + take_openssl_errors());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  // Sessions are kept by whoever made the connection, never by the context: it serves many.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context.get(), on_new_session);
  SSL_CTX_set_msg_callback(context.get(), on_message);
  auto trusted = ca_pem.empty() ? trust_system_roots(*context) : trust_pem(*context, ca_pem);
  if (!trusted) return fail(std::move(trusted));
  return context;
}

Task<Result<std::unique_ptr<Stream>>> connect_tls(Worker& worker, SSL_CTX& context, Fd socket,
                                                  policy::HostName host, Clock::duration limit,
                                                  std::shared_ptr<TlsSessions> sessions) {
  auto stream = make_tls_stream(worker, context, std::move(socket), Peer::Upstream);
  if (!stream) co_return fail(std::move(stream));
  TlsStream& tls = **stream;
  SSL_set_app_data(tls.ssl(), &tls);
  tls.use_sessions(std::move(sessions));
  if (auto status = name_host(*tls.ssl(), host); !status) co_return fail(std::move(status));
  tls.limit_total(limit);
  auto status = co_await tls.handshake(SSL_connect, Reason::UpstreamTls);
  if (status) status = check_protocol(*tls.ssl());
  if (!status) {
    // An upstream that hangs up in the middle of the handshake does not speak TLS with us.
    const bool hung_up = status.error().reason == Reason::UpstreamClosed;
    co_return fail(hung_up ? Reason::UpstreamTls : status.error().reason, status.error().detail);
  }
  tls.no_limit();
  co_return std::unique_ptr<Stream>(std::move(*stream));
}

Task<Result<AcceptedTls>> accept_tls(Worker& worker, SSL_CTX& context, void* callback_argument, Fd socket,
                                     Clock::duration limit, std::string already_read) {
  auto stream = make_tls_stream(worker, context, std::move(socket), Peer::Client);
  if (!stream) co_return fail(std::move(stream));
  TlsStream& tls = **stream;
  if (auto status = tls.read_first(already_read); !status) co_return fail(std::move(status));
  SSL_set_app_data(tls.ssl(), callback_argument);
  tls.limit_total(limit);
  if (auto status = co_await tls.handshake(SSL_accept, Reason::NotTls); !status) {
    co_return fail(std::move(status));
  }
  tls.no_limit();
  SSL* ssl = tls.ssl();
  co_return AcceptedTls{std::unique_ptr<Stream>(std::move(*stream)), ssl};
}

std::string take_openssl_errors() {
  std::string text;
  while (const unsigned long error = ERR_get_error()) {
    std::array<char, 256> line;
    ERR_error_string_n(error, line.data(), line.size());
    if (!text.empty()) text += "; ";
    text += line.data();
  }
  return text;
}

}  // namespace sallyport::net
