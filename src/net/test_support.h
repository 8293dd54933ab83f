// For tests of rooms that work over real loopback sockets. Not part of any program.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "net/certificate.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/worker.h"
#include "policy/host.h"

namespace sallyport::net::test {

inline policy::HostName host(std::string_view name) {
  return policy::HostName::parse(name).value();
}

// As every program of ours does.
inline void ignore_sigpipe() {
  std::signal(SIGPIPE, SIG_IGN);
}

// Runs `task` on the worker to its end and returns what it gives.
template <class T>
T run(Worker& worker, Task<T> task) {
  std::optional<T> result;
  worker.spawn("test", [](Worker& w, Task<T> t, std::optional<T>& out) -> Task<> {
    out.emplace(co_await std::move(t));
    w.stop();
  }(worker, std::move(task), result));
  worker.run();
  return std::move(*result);
}

inline void run(Worker& worker, Task<> task) {
  worker.spawn("test", [](Worker& w, Task<> t) -> Task<> {
    co_await std::move(t);
    w.stop();
  }(worker, std::move(task)));
  worker.run();
}

// A listener on 127.0.0.1 at a port of the kernel's choice.
class Listener {
 public:
  explicit Listener(int backlog = 16) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (!fd_) throw std::runtime_error("socket");
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* address = reinterpret_cast<sockaddr*>(&at);
    if (::bind(fd_.get(), address, size) != 0 || ::listen(fd_.get(), backlog) != 0 ||
        ::getsockname(fd_.get(), address, &size) != 0) {
      throw std::runtime_error("listen on loopback");
    }
    port_ = ntohs(at.sin_port);
  }

  std::uint16_t port() const { return port_; }
  int fd() const { return fd_.get(); }
  // The connection that has arrived; the kernel makes it before connect() returns.
  Fd accept() { return Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  // A blocking connection to here.
  Fd connect() const {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throw std::runtime_error("socket");
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port_);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error("connect on loopback");
    }
    return fd;
  }

 private:
  Fd fd_;
  std::uint16_t port_ = 0;
};

// A server's TLS context with one certificate.
inline SslContext server_context(const KeyPair& leaf) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context || SSL_CTX_use_certificate(context.get(), leaf.certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), leaf.key.get()) != 1) {
    throw std::runtime_error("server context: " + take_openssl_errors());
  }
  return context;
}

// A TLS server for "forge.test" on loopback, in the same worker. Each connection runs `serve`, and is closed
// without close_notify when that returns. Outlives the worker's run.
class TlsServer {
 public:
  using Serve = std::function<Task<>(Stream&, int connection)>;  // connections count from 1

  explicit TlsServer(Worker& worker) : worker_(worker), socket_(worker.io()) {
    context_ = server_context(make_leaf(ca, host("forge.test")).value());
    socket_.assign(::dup(listener_.fd()));
    socket_.non_blocking(true);
    worker.spawn("TLS server", accept_all());
  }

  std::string ca_pem() const { return certificate_pem(*ca.certificate).value(); }
  std::uint16_t port() const { return listener_.port(); }

  KeyPair ca = make_session_ca("00000000").value();
  Serve serve;
  int connections = 0;
  int resumed = 0;  // handshakes

 private:
  Task<> accept_all() {
    for (;;) {
      co_await socket_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                  boost::asio::use_awaitable);
      Fd accepted = listener_.accept();
      if (accepted) worker_.spawn("TLS connection", run_connection(std::move(accepted), ++connections));
    }
  }

  Task<> run_connection(Fd fd, int number) {
    auto accepted = co_await accept_tls(worker_, *context_, nullptr, std::move(fd), std::chrono::seconds(10));
    if (!accepted) co_return;
    resumed += SSL_session_reused(accepted->ssl);
    co_await serve(*accepted->stream, number);
  }

  Worker& worker_;
  Listener listener_;
  SslContext context_;
  boost::asio::posix::stream_descriptor socket_;
};

}  // namespace sallyport::net::test
