#include "engine/demultiplexer.h"

#include <gtest/gtest.h>

#include <string>

namespace sallyport::engine {
namespace {

using namespace std::string_literals;

struct Outputs {
  std::string standard, error;
  Status status;
  bool whole = false;
};

Outputs read_in_pieces(const std::string& bytes, std::size_t piece) {
  Outputs outputs;
  Demultiplexer reader;
  for (std::size_t at = 0; at < bytes.size() && outputs.status; at += piece) {
    outputs.status = reader.feed(std::string_view(bytes).substr(at, piece),
                                 [&](Demultiplexer::Output output, std::string_view text) {
                                   const bool error = output == Demultiplexer::Output::Error;
                                   (error ? outputs.error : outputs.standard) += text;
                                 });
  }
  outputs.whole = reader.between_frames();
  return outputs;
}

TEST(Demultiplexer, TellsTheOutputsApartHoweverTheBytesCome) {
  const std::string bytes = "\1\0\0\0\0\0\0\3abc\2\0\0\0\0\0\0\1!\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\2de"s;
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const Outputs outputs = read_in_pieces(bytes, piece);
    ASSERT_TRUE(outputs.status);
    EXPECT_EQ(outputs.standard, "abcde");
    EXPECT_EQ(outputs.error, "!");
    EXPECT_TRUE(outputs.whole);
  }
}

TEST(Demultiplexer, NoticesAnEndWithinAFrame) {
  EXPECT_FALSE(read_in_pieces("\1\0\0\0\0\0\0\3ab"s, 4).whole);
  EXPECT_FALSE(read_in_pieces("\1\0\0"s, 4).whole);
}

TEST(Demultiplexer, RefusesWhatIsNoFrame) {
  EXPECT_FALSE(read_in_pieces("hello, world"s, 4).status);
  EXPECT_FALSE(read_in_pieces("\0\0\0\0\0\0\0\1a"s, 16).status);  // standard input never comes back
  EXPECT_FALSE(read_in_pieces("\1\0\1\0\0\0\0\1a"s, 16).status);
}

}  // namespace
}  // namespace sallyport::engine
