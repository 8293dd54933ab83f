// Reads one answer of the engine from bytes as they come. The engine is a trusted peer (it can do all that we
// can), so Beast's parser is good enough; but its answers are bounded all the same.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sallyport::engine {

// The first line and the fields of an answer.
inline constexpr std::size_t kMaxAnswerHeadBytes = 32 * 1024;
// The body of an answer that is read whole; the list of a thousand containers has about 2 MiB.
inline constexpr std::size_t kMaxAnswerBytes = 16 * 1024 * 1024;

// What of a good answer's body there is. The body of any other is read whole: it says why.
enum class BodyKind {
  Whole,   // up to kMaxAnswerBytes
  Stream,  // pieces, without end
  Raw,     // none: behind the head the connection is the caller's
};

class AnswerReader {
 public:
  explicit AnswerReader(BodyKind kind);
  ~AnswerReader();
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;

  // The next bytes; those behind the end of an answer that is not Raw are dropped. After an error the reader
  // is of no more use.
  Status feed(std::string_view bytes);
  // The engine has closed the connection: an error unless that is how the answer ends.
  Status end();

  bool head_done() const;
  // Nothing is to come: the body is whole, or the head of a Raw one is.
  bool done() const;
  // Once the head is done.
  int status() const;
  // 2xx, and 101 for a Raw one.
  bool good() const;
  // What of the body has come since this was asked last; of a Raw one what came behind its head.
  std::string take_body();

 private:
  class Parser;
  Status parse();
  Status parse_body();

  BodyKind kind_;
  std::unique_ptr<Parser> parser_;
  std::string pending_;  // come, but not parsed yet
};

}  // namespace sallyport::engine
