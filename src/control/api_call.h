// What a handler of the control API is given: the call, and the way to answer it.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/http_connection.h"
#include "control/router.h"
#include "os/peer.h"

namespace sallyport::control {

struct Call {
  os::Peer peer;
  std::string request_id;
  PathParameters path;
  std::map<std::string, std::string> query;
  boost::json::value body;  // null when there was none
  std::vector<Fd> descriptors;
};

// A handler's answer, now or later: one of send(), text() and refuse(), or lines. Whoever drops it unanswered
// has made a mistake, which the client is told (500); an unfinished stream is cut. After the peer went away
// all of it does nothing.
class Answer {
 public:
  Answer(std::weak_ptr<HttpConnection> connection, std::string request_id);
  Answer(Answer&& other) noexcept;
  Answer& operator=(Answer&& other) noexcept;
  ~Answer();

  void send(int status, const boost::json::value& body);
  void text(int status, std::string_view content_type, std::string_view body);
  void refuse(const ApiError& error);
  void refuse(const Error& error) { refuse(to_api_error(error)); }
  // The same, or a stream's last line when there were lines already.
  void fail(const ApiError& error);

  // JSON lines: any number of line(), then end(). False from line() when the peer is gone, or was cut.
  bool line(const boost::json::value& line);
  void end();

  // Lines are to come, although there may be none for long.
  void begin();
  // Of lines that the peer has not taken yet.
  std::size_t queued_bytes() const;

  // The peer went away, or was cut: to be asked, or told (at most once, and not after the answer's end).
  bool is_gone() const;
  void when_gone(std::function<void()> callback);

 private:
  enum class State : std::uint8_t { Unanswered, Lines, Done };
  void drop();

  std::weak_ptr<HttpConnection> connection_;
  std::string request_id_;
  State state_ = State::Unanswered;
};

}  // namespace sallyport::control
