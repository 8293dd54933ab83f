// HTTP/1.1's chunked coding (RFC 9112, 7.1), read strictly and incrementally, for requests and answers alike.
// An attacker chooses these bytes, and how they are cut into pieces: the outcome never depends on the cuts.
// No body byte is copied.
//
// There are no chunk extensions (refused: nobody needs them, and two readers that skip them differently
// disagree about where a body ends), no bare LF, no space beside the size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace sallyport::wire {

class ChunkedDecoder {
 public:
  // A size line is at most this many hex digits and CRLF.
  static constexpr unsigned kMaxSizeDigits = 16;
  // An answer's trailer section is read and dropped up to this; a request's may hold no field at all.
  static constexpr std::size_t kMaxTrailerBytes = 8 * 1024;

  // Chooses the trailer rule above, and the reason of a failure: BadRequest or UpstreamMalformed.
  enum class Message : std::uint8_t { Request, Answer };

  struct Step {
    std::size_t consumed = 0;  // bytes of `in` that are done with; the caller drops them
    std::string_view data;     // body bytes: a part of the consumed ones
    bool finished = false;     // the body is complete; what is behind `consumed` is not part of it
  };

  explicit ChunkedDecoder(Message message) : message_(message) {}

  // Reads on in `in`, until one piece of data, the body's end, or the end of `in`. An empty `data` without
  // `finished` means that all of `in` was consumed and more is needed. After a failure, or after the end, it
  // is not called again.
  Result<Step> decode(std::string_view in);
  bool finished() const { return state_ == State::Finished; }

 private:
  // Named after what is expected next.
  enum class State : std::uint8_t {
    Size,          // a hex digit, or CR after at least one
    SizeLf,        // LF behind the size
    Data,          // remaining_ bytes
    DataCr,        // CR behind the data
    DataLf,        // LF behind that
    TrailerStart,  // a field, or CR of the empty line
    TrailerName,   // the rest of a field's name, or its colon
    TrailerValue,  // the rest of a field's value, or its CR
    TrailerLf,     // LF behind a field
    EndLf,         // LF of the empty line
    Finished,
  };

  // One byte outside the data; false when it may not stand there.
  bool accept(char c);
  bool accept_size(char c);
  bool accept_trailer(char c);

  Message message_;
  State state_ = State::Size;
  unsigned digits_ = 0;
  std::uint64_t remaining_ = 0;  // of the chunk
  std::size_t trailer_bytes_ = 0;
};

}  // namespace sallyport::wire
