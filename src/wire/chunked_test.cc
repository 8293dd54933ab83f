#include "wire/chunked.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport::wire {
namespace {

using Message = ChunkedDecoder::Message;

struct Outcome {
  std::string body;
  std::string rest;  // behind the body's end
  bool finished = false;
  std::optional<Reason> failure;
};

Outcome decode_in_pieces(std::string_view in, std::size_t piece, Message message) {
  ChunkedDecoder decoder(message);
  Outcome out;
  std::size_t at = 0;
  while (at < in.size() && !out.finished) {
    const auto step = decoder.decode(in.substr(at, piece));
    if (!step) {
      out.failure = step.error().reason;
      return out;
    }
    out.body += step->data;
    at += step->consumed;
    out.finished = step->finished;
  }
  out.rest = in.substr(at);
  return out;
}

TEST(Chunked, ReadsBodiesHoweverTheyAreCut) {
  const struct {
    std::string_view in, body, rest;
  } cases[] = {
      {"0\r\n\r\n", "", ""},
      {"000\r\n\r\nGET /", "", "GET /"},
      {"5\r\nhello\r\n0\r\n\r\n", "hello", ""},
      {"1\r\nh\r\n0000000000000004\r\nello\r\n0\r\n\r\nnext", "hello", "next"},
      {"a\r\n0123456789\r\nB\r\n\r\n\r\n\r\n\r\n\r\n0\r\n0\r\n\r\n", "0123456789\r\n\r\n\r\n\r\n\r\n0", ""},
  };
  for (const auto& c : cases) {
    for (std::size_t piece = 1; piece <= c.in.size(); ++piece) {
      const Outcome out = decode_in_pieces(c.in, piece, Message::Request);
      EXPECT_FALSE(out.failure) << c.in;
      EXPECT_TRUE(out.finished) << c.in;
      EXPECT_EQ(out.body, c.body) << c.in;
      EXPECT_EQ(out.rest, c.rest) << c.in;
    }
  }
}

TEST(Chunked, RefusesEverySecondReading) {
  const std::string_view cases[] = {
      "0x1\r\na\r\n0\r\n\r\n",
      "+1\r\na\r\n0\r\n\r\n",
      "-1\r\na\r\n0\r\n\r\n",
      " 1\r\na\r\n0\r\n\r\n",
      "1 \r\na\r\n0\r\n\r\n",
      "1\t\r\na\r\n0\r\n\r\n",
      "1_0\r\na\r\n0\r\n\r\n",
      "00000000000000001\r\na\r\n0\r\n\r\n",
      "\r\na\r\n0\r\n\r\n",
      "1;a=b\r\na\r\n0\r\n\r\n",
      "1;a=\"\r\n\"\r\na\r\n0\r\n\r\n",
      "1;\n\r\na\r\n0\r\n\r\n",
      "1\na\n0\n\n",
      "1\r\na\n0\r\n\r\n",
      "1\r\na0\r\n\r\n",
      "1\r\nab\r\n0\r\n\r\n",
      "1\r\r\na\r\n0\r\n\r\n",
      "0\r\n\n",
      "0\n\r\n",
      "0\r\n\rX",
      "g\r\n",
      "\xb1\r\n",
  };
  for (const auto in : cases) {
    for (const auto message : {Message::Request, Message::Answer}) {
      const auto wanted = message == Message::Request ? Reason::BadRequest : Reason::UpstreamMalformed;
      for (std::size_t piece = 1; piece <= in.size(); ++piece) {
        EXPECT_EQ(decode_in_pieces(in, piece, message).failure, wanted) << in;
      }
    }
  }
}

// An upstream that got a credential could have it written into the audit log, a byte for each answer.
TEST(Chunked, QuotesNoByteOfAnUpstreamInAnError) {
  ChunkedDecoder of_client(Message::Request);
  ChunkedDecoder of_upstream(Message::Answer);
  EXPECT_NE(of_client.decode("Z").error().detail.find('Z'), std::string::npos);
  EXPECT_EQ(of_upstream.decode("Z").error().detail.find('Z'), std::string::npos);
}

TEST(Chunked, RefusesTrailersInRequests) {
  const auto out = decode_in_pieces("0\r\nContent-Length: 5\r\n\r\n", 100, Message::Request);
  EXPECT_EQ(out.failure, Reason::BadRequest);
}

TEST(Chunked, DropsTrailersOfAnswers) {
  const auto out = decode_in_pieces("1\r\na\r\n0\r\nX-Sum: 1 2\r\nY:\r\n\r\nrest", 3, Message::Answer);
  EXPECT_FALSE(out.failure);
  EXPECT_TRUE(out.finished);
  EXPECT_EQ(out.body, "a");
  EXPECT_EQ(out.rest, "rest");
}

TEST(Chunked, RefusesMalformedTrailersOfAnswers) {
  for (const std::string_view trailer : {": x\r\n", "a b: c\r\n", "a: b\r\n c\r\n", "a: b\nc: d\r\n",
                                         "a: b\rc\r\n", "a\r\n", "a: \x01\r\n", "a: \x7f\r\n"}) {
    const auto out = decode_in_pieces("0\r\n" + std::string(trailer) + "\r\n", 100, Message::Answer);
    EXPECT_EQ(out.failure, Reason::UpstreamMalformed) << trailer;
  }
}

TEST(Chunked, LimitsTheTrailersOfAnswers) {
  // "a:" and CR count, LF does not.
  const auto trailer_of = [](std::size_t bytes) {
    return "0\r\na:" + std::string(bytes - 3, 'v') + "\r\n\r\n";
  };
  const auto most = decode_in_pieces(trailer_of(ChunkedDecoder::kMaxTrailerBytes), 4096, Message::Answer);
  EXPECT_FALSE(most.failure);
  EXPECT_TRUE(most.finished);
  const auto over = decode_in_pieces(trailer_of(ChunkedDecoder::kMaxTrailerBytes + 1), 4096, Message::Answer);
  EXPECT_EQ(over.failure, Reason::UpstreamMalformed);
}

TEST(Chunked, TakesTheLargestSizeWithoutOverflow) {
  ChunkedDecoder decoder(Message::Request);
  const std::string_view in = "ffffffffffffffff\r\nabc";
  const auto step = decoder.decode(in);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->data, "abc");
  EXPECT_EQ(step->data.data(), in.data() + 18) << "body bytes are not copied";
  EXPECT_FALSE(step->finished);
}

}  // namespace
}  // namespace sallyport::wire
