// Frames one HTTP/1.1 answer (RFC 9112), strictly: where its head and its body end has one reading, or it is
// refused. The upstream chooses these bytes, and how they are cut into pieces; the outcome never depends on
// the cuts. No I/O here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "upstream/exchange.h"
#include "wire/chunked.h"

namespace sallyport::upstream {

// What its request was, as far as the answer's end depends on it.
struct Asked {
  bool head = false;    // HEAD: no body, whatever the fields say
  std::string upgrade;  // a 101 to this protocol ends HTTP on the connection; "": none may come
};

// How the end of a body is told.
enum class AnswerFraming : std::uint8_t { NoBody, Length, Chunked, UntilClose };

struct ParsedAnswer {
  AnswerHead head;
  AnswerFraming framing = AnswerFraming::NoBody;
  bool keep_alive = false;
};

// `text` is everything up to the empty line, which it includes. Fails with UpstreamMalformed.
Result<ParsedAnswer> parse_answer_head(std::string_view text, const Asked& asked = {});

class AnswerFramer {
 public:
  explicit AnswerFramer(Asked asked = {}) : asked_(std::move(asked)) {}

  enum class Event : std::uint8_t {
    NeedMore,  // all of `in` was consumed
    Head,      // the final head, or a 101 that was asked for, is complete: take_head()
    Data,      // body bytes
    End,       // the answer is complete; what is behind `consumed` is not part of it
  };
  struct Step {
    Event event = Event::NeedMore;
    std::size_t consumed = 0;  // bytes of `in` that are done with
    std::string_view data;     // Data: a part of the consumed ones
  };

  // After a failure it is not called again. The last Data may already have ended the answer: ended() tells
  // earlier than the End that follows.
  Result<Step> feed(std::string_view in);
  // The peer's orderly end: fine when the body ends with the connection, or was complete.
  Status end_of_input();

  // Once, after Event::Head.
  AnswerHead take_head() { return std::move(parsed_.head); }
  // Not a byte has come yet.
  bool untouched() const { return untouched_; }
  // Between the first and the last byte of a head, interim ones included.
  bool inside_head() const { return !head_.empty(); }
  bool ended() const { return state_ == State::Ended; }
  // The connection may serve another request, as far as this answer goes.
  bool reusable() const { return ended() && parsed_.keep_alive; }

 private:
  enum class State : std::uint8_t { Head, Body, Ended };

  Result<Step> feed_head(std::string_view in);
  Result<Step> feed_body(std::string_view in);
  Result<bool> end_head();  // true: it was the final one
  // One byte of the head; false when it may not stand there.
  bool accept_head_byte(char c);

  Asked asked_;
  State state_ = State::Head;
  bool untouched_ = true;
  int interim_ = 0;
  std::string head_;
  ParsedAnswer parsed_;
  std::uint64_t remaining_ = 0;
  wire::ChunkedDecoder chunks_{wire::ChunkedDecoder::Message::Answer};
};

}  // namespace sallyport::upstream
