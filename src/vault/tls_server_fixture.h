// A TLS server on loopback with a certificate of its own authority. For tests only.
#pragma once

#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <string>
#include <string_view>

#include "net/test_support.h"

namespace sallyport::vault {

// Answers every request (without body) on every connection with one text, and keeps what it received.
struct TlsServer {
  net::test::Listener listener;
  net::KeyPair ca = net::make_session_ca("0123").value();
  net::KeyPair leaf;
  net::SslContext context;
  std::string answer;
  int connections = 0;
  std::string received;

  explicit TlsServer(std::string_view name)
      : leaf(net::make_leaf(ca, net::test::host(name)).value()), context(net::test::server_context(leaf)) {}

  net::Task<> serve(net::Worker& worker) {
    constexpr auto kPatience = std::chrono::seconds(10);
    boost::asio::posix::stream_descriptor arrivals(worker.io(), ::dup(listener.fd()));
    for (;;) {
      co_await arrivals.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                   boost::asio::use_awaitable);
      auto accepted = co_await net::accept_tls(worker, *context, nullptr, listener.accept(), kPatience);
      if (!accepted) continue;
      ++connections;
      co_await talk(*accepted->stream);
    }
  }

  net::Task<> talk(net::Stream& stream) {
    std::array<char, 4096> piece{};
    std::string unanswered;
    for (;;) {
      auto got = co_await stream.read_some(piece);
      if (!got || *got == 0) co_return;
      received.append(piece.data(), *got);
      unanswered.append(piece.data(), *got);
      if (!unanswered.ends_with("\r\n\r\n")) continue;
      unanswered.clear();
      (void)co_await stream.write_all(answer);
    }
  }
};

}  // namespace sallyport::vault
