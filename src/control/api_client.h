// The command line's side of the control API: one call a connection, blocking. It speaks only to a daemon of
// root's or of its own user (os/control_socket.h), and takes its answers for no more than bytes with limits.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "wire/chunked.h"

namespace sallyport::control {

// For a whole answer that is no stream; `new` gives another.
inline constexpr std::chrono::seconds kApiAnswerLimit{30};

// The text of a field; "" when there is none.
std::string text_of(const boost::json::object& object, std::string_view key);

// What an answer, or a line of a stream, was refused or ended with: its message, and what to do. nullopt: it
// says no such thing. See error_json().
std::optional<Error> error_in(const boost::json::object& answer);

struct ApiRequest {
  std::string method;
  std::string target;  // "/v1/sessions?all=true"
  std::optional<boost::json::value> body = std::nullopt;
  std::vector<int> descriptors = {};  // at most kMaxDescriptors; stay the caller's
};

// Errors of all below: UpstreamUnreachable when no daemon runs (the sentence says how to start it),
// Interrupted when a signal came while it waited (the call may be tried again), UpstreamTimeout,
// UpstreamTruncated; what the daemon refused has the reason that it named, or Internal, with its message and
// hint as lines.
class ApiStream {
 public:
  struct Step {
    enum class Kind : std::uint8_t { Line, End, NotYet };
    Kind kind;
    boost::json::value line;
  };

  // The next line; NotYet when none came within `wait` (none given: as long as it takes).
  Result<Step> next(std::optional<std::chrono::milliseconds> wait = std::nullopt);
  // Readable when more came. What came already is not seen by it: next(0) until NotYet, then wait.
  int socket() const { return socket_.get(); }

 private:
  friend class ApiClient;
  ApiStream(Fd socket, std::string received) : socket_(std::move(socket)), received_(std::move(received)) {}

  Status decode();

  Fd socket_;
  std::string received_;  // not decoded yet
  std::string lines_;     // decoded, without a whole line in it but before the next step
  wire::ChunkedDecoder decoder_{wire::ChunkedDecoder::Message::Answer};
};

class ApiClient {
 public:
  // `self`: who we are, see os::connect_control(). `start_command`: what to run where no daemon is.
  ApiClient(std::string socket_path, uid_t self, std::string start_command = "sallyport gateway start")
      : path_(std::move(socket_path)), self_(self), start_command_(std::move(start_command)) {}

  const std::string& path() const { return path_; }

  // A call whose answer is JSON, and one whose answer is text.
  Result<boost::json::value> call(const ApiRequest& request,
                                  std::chrono::milliseconds limit = kApiAnswerLimit) const;
  Result<std::string> text(const ApiRequest& request,
                           std::chrono::milliseconds limit = kApiAnswerLimit) const;
  // A call whose answer is JSON lines; `limit` is for its begin.
  Result<ApiStream> stream(const ApiRequest& request,
                           std::chrono::milliseconds limit = kApiAnswerLimit) const;

 private:
  Result<Fd> send(const ApiRequest& request) const;

  std::string path_;
  uid_t self_;
  std::string start_command_;
};

}  // namespace sallyport::control
