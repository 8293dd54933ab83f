// The sandbox's name server: questions over UDP and TCP, one session's.
#pragma once

#include <chrono>
#include <memory>

#include "audit/recorder.h"
#include "base/fd.h"
#include "base/rate.h"
#include "base/slots.h"
#include "dns/answer.h"
#include "net/stream.h"
#include "net/task.h"
#include "net/worker.h"

namespace sallyport::dns {

inline constexpr std::size_t kMaxTcpConnections = 16;  // at once; more are closed
inline constexpr std::size_t kMaxTcpQueries = 100;     // of one connection
inline constexpr std::chrono::seconds kTcpIdle{10};

class Server {
 public:
  // All are borrowed and outlive this.
  Server(net::Worker& worker, const policy::Grant& grant, SyntheticAddresses& addresses,
         audit::Recorder& recorder);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Every question from now on is judged by this grant. It outlives this, or the next call.
  void use(const policy::Grant& grant) { grant_ = &grant; }

  // Answers on a bound, non-blocking socket until it fails. Where the socket has IP_PKTINFO or
  // IPV6_RECVPKTINFO on, an answer leaves from the address that was asked; with a wildcard socket the kernel
  // would choose another, and the client would not take it.
  net::Task<> serve_udp(Fd socket);
  // One connection, with each message behind its length (RFC 7766), until its end.
  net::Task<> serve_tcp(Fd socket);

 private:
  net::Task<> answer_stream(net::Stream& stream);
  void answer_waiting(int socket);
  std::string answer_one(std::string_view query);

  net::Worker& worker_;
  const policy::Grant* grant_;
  SyntheticAddresses& addresses_;
  audit::Recorder& recorder_;
  // Over both transports together. What comes faster is dropped, not queued: clients ask again, and a flood
  // costs neither memory nor audit lines.
  TokenBucket rate_{grant_->limits.dns};
  Slots tcp_connections_{kMaxTcpConnections};
};

}  // namespace sallyport::dns
