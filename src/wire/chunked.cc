#include "wire/chunked.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sallyport::wire {

Result<ChunkedDecoder::Step> ChunkedDecoder::decode(std::string_view in) {
  Step step;
  while (step.consumed < in.size() && state_ != State::Finished) {
    if (state_ == State::Data) {
      const std::uint64_t there = in.size() - step.consumed;
      const auto take = static_cast<std::size_t>(std::min(remaining_, there));
      step.data = in.substr(step.consumed, take);
      step.consumed += take;
      remaining_ -= take;
      if (remaining_ == 0) state_ = State::DataCr;
      return step;
    }
    const char c = in[step.consumed];
    if (!accept(c)) {
      // An upstream's byte is not quoted: it could be the credential's, one in each answer.
      if (message_ == Message::Answer)
        return fail(Reason::UpstreamMalformed, "chunked body: unexpected byte");
      return fail(Reason::BadRequest, "chunked body: unexpected byte '" + escaped({&c, 1}) + "'");
    }
    ++step.consumed;
  }
  step.finished = finished();
  return step;
}

bool ChunkedDecoder::accept(char c) {
  const auto only = [&](char wanted, State next) {
    if (c == wanted) state_ = next;
    return c == wanted;
  };
  switch (state_) {
    case State::Size:
      return accept_size(c);
    case State::SizeLf:
      return only('\n', remaining_ == 0 ? State::TrailerStart : State::Data);
    case State::DataCr:
      return only('\r', State::DataLf);
    case State::DataLf:
      digits_ = 0;
      return only('\n', State::Size);
    case State::TrailerStart:
    case State::TrailerName:
    case State::TrailerValue:
      return accept_trailer(c);
    case State::TrailerLf:
      return only('\n', State::TrailerStart);
    case State::EndLf:
      return only('\n', State::Finished);
    case State::Data:
    case State::Finished:
      return false;
  }
  std::unreachable();
}

bool ChunkedDecoder::accept_size(char c) {
  if (c == '\r' && digits_ > 0) {
    state_ = State::SizeLf;
    return true;
  }
  if (!is_hex(c) || digits_ == kMaxSizeDigits) return false;
  ++digits_;
  remaining_ = remaining_ << 4U | hex_value(c);  // 16 digits are 64 bits: no overflow
  return true;
}

bool ChunkedDecoder::accept_trailer(char c) {
  if (state_ == State::TrailerStart && c == '\r') {
    state_ = State::EndLf;
    return true;
  }
  if (message_ == Message::Request || ++trailer_bytes_ > kMaxTrailerBytes) return false;
  if (state_ == State::TrailerValue) {
    if (c == '\r') state_ = State::TrailerLf;
    return c == '\r' || is_field_value_char(c);
  }
  if (c == ':' && state_ == State::TrailerName) {
    state_ = State::TrailerValue;
    return true;
  }
  // A name, also its first character: no obs-fold, no empty name.
  state_ = State::TrailerName;
  return is_token_char(c);
}

}  // namespace sallyport::wire
