#include "control/api_call.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

namespace sallyport::control {

Answer::Answer(std::weak_ptr<HttpConnection> connection, std::string request_id)
    : connection_(std::move(connection)), request_id_(std::move(request_id)) {}

Answer::Answer(Answer&& other) noexcept
    : connection_(std::move(other.connection_)),
      request_id_(std::move(other.request_id_)),
      state_(std::exchange(other.state_, State::Done)) {}

Answer& Answer::operator=(Answer&& other) noexcept {
  if (this == &other) return *this;
  drop();
  connection_ = std::move(other.connection_);
  request_id_ = std::move(other.request_id_);
  state_ = std::exchange(other.state_, State::Done);
  return *this;
}

Answer::~Answer() {
  drop();
}

void Answer::drop() {
  const auto connection = connection_.lock();
  if (!connection || state_ == State::Done) return;
  connection->when_gone(nullptr);
  if (state_ == State::Lines) return connection->close();
  refuse(Error{Reason::Internal, "the call was dropped without an answer"});
}

void Answer::text(int status, std::string_view content_type, std::string_view body) {
  if (std::exchange(state_, State::Done) != State::Unanswered) return;
  if (const auto connection = connection_.lock()) connection->send(status, content_type, body);
}

void Answer::send(int status, const boost::json::value& body) {
  text(status, "application/json", boost::json::serialize(body) + "\n");
}

void Answer::refuse(const ApiError& error) {
  text(error.status, "application/json", error_json(error, request_id_));
}

void Answer::fail(const ApiError& error) {
  if (state_ == State::Unanswered) return refuse(error);
  line(boost::json::parse(error_json(error, request_id_)));
  end();
}

bool Answer::line(const boost::json::value& line) {
  const auto connection = connection_.lock();
  if (!connection || state_ == State::Done) return false;
  const std::string json = boost::json::serialize(line);
  if (std::exchange(state_, State::Lines) == State::Unanswered) {
    connection->begin_stream(json);
  } else {
    connection->line(json);
  }
  return !connection->is_closed();
}

void Answer::end() {
  const auto connection = connection_.lock();
  if (!connection || state_ == State::Done) return;
  if (std::exchange(state_, State::Done) == State::Unanswered) connection->begin_stream();
  connection->end_stream();
}

void Answer::begin() {
  const auto connection = connection_.lock();
  if (connection && std::exchange(state_, State::Lines) == State::Unanswered) connection->begin_stream();
}

std::size_t Answer::queued_bytes() const {
  const auto connection = connection_.lock();
  return connection ? connection->queued_bytes() : 0;
}

bool Answer::is_gone() const {
  const auto connection = connection_.lock();
  return !connection || connection->is_closed();
}

void Answer::when_gone(std::function<void()> callback) {
  if (const auto connection = connection_.lock()) connection->when_gone(std::move(callback));
}

}  // namespace sallyport::control
