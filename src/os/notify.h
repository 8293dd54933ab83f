// What a service tells its manager, by the protocol of sd_notify(3): one datagram a message, to the socket
// that $NOTIFY_SOCKET names. Without that variable nobody wants to know, and nothing is sent.
#pragma once

#include <sys/types.h>

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

// The manager's side: whoever starts a service learns here that it is ready.
class NotifyListener {
 public:
  static Result<NotifyListener> open();

  // For the service's NOTIFY_SOCKET.
  const std::string& name() const { return name_; }
  // Readable when somebody said something.
  int fd() const { return socket_.get(); }
  // Takes what came, and whether `service` said that it is ready. Others may send too; they are not heard.
  Result<bool> heard_ready(pid_t service);

 private:
  Fd socket_;
  std::string name_;
};

// How often the manager wants to hear watchdog(): half of WATCHDOG_USEC, if WATCHDOG_PID (null: anybody) is
// `self`.
std::optional<std::chrono::milliseconds> watchdog_period(const char* usec, const char* pid, pid_t self);

}  // namespace sallyport::os
