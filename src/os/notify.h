// What a service tells its manager, by the protocol of sd_notify(3): one datagram a message, to the socket
// that $NOTIFY_SOCKET names. Without that variable nobody wants to know, and nothing is sent.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace sallyport::os {

class Notifier {
 public:
  // `socket`: the value of NOTIFY_SOCKET, an absolute path or '@' and an abstract name; null or empty:
  // nobody.
  static Result<Notifier> open(const char* socket);

  // None of them blocks; a manager that does not listen is no reason to fail.
  void ready(std::string_view status);
  void status(std::string_view text);
  // The manager measures the reload from this very moment; ready() ends it.
  void reloading();
  void stopping();
  void watchdog();

 private:
  void send(const std::string& message);

  Fd socket_;
};

// How often the manager wants to hear watchdog(): half of WATCHDOG_USEC, if WATCHDOG_PID (null: anybody) is
// `self`.
std::optional<std::chrono::milliseconds> watchdog_period(const char* usec, const char* pid, pid_t self);

}  // namespace sallyport::os
