#include "engine/answer_reader.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace sallyport::engine {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

constexpr int kSwitchingProtocols = 101;
// "0\r\n\r\n". Of a last chunk that has begun Beast asserts that so much is there when it is asked again.
constexpr std::size_t kShortestChunk = 5;

std::unexpected<Error> malformed(const error_code& error) {
  std::string what = error.message();
  if (error == http::error::header_limit) {
    what = fmt::format("its head has more than {} bytes", kMaxAnswerHeadBytes);
  }
  if (error == http::error::body_limit) what = fmt::format("it has more than {} bytes", kMaxAnswerBytes);
  return fail(Reason::EngineRefused, fmt::format("the container engine's answer cannot be read: {}", what));
}

}  // namespace

class AnswerReader::Parser : public http::basic_parser<false> {
 public:
  Parser() { header_limit(kMaxAnswerHeadBytes); }

  // What comes is the line before a chunk.
  bool is_between_chunks() const { return is_header_done() && chunked() && chunk_left_ == 0; }

  int status = 0;
  std::string body;

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code&) override { status = code; }
  void on_field_impl(http::field, string_view, string_view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view bytes, error_code&) override { return append(bytes); }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code&) override { chunk_left_ = size; }
  std::size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code&) override {
    chunk_left_ -= bytes.size();
    return append(bytes);
  }
  void on_finish_impl(error_code&) override {}

  std::size_t append(string_view bytes) {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }

  std::uint64_t chunk_left_ = 0;
};

AnswerReader::AnswerReader(BodyKind kind) : kind_(kind), parser_(std::make_unique<Parser>()) {
  parser_->body_limit(kMaxAnswerBytes);
}

AnswerReader::~AnswerReader() = default;

Status AnswerReader::feed(std::string_view bytes) {
  const bool raw = kind_ == BodyKind::Raw && head_done() && good();
  if (parser_->is_done() && !raw) return {};
  pending_ += bytes;
  if (head_done()) return parse_body();
  // Stops behind the head: what follows depends on it.
  if (auto status = parse(); !status || !head_done()) return status;
  if (kind_ == BodyKind::Raw && good()) return {};
  if (kind_ == BodyKind::Stream && good()) parser_->body_limit(boost::none);
  parser_->eager(true);
  return parse_body();
}

Status AnswerReader::parse_body() {
  if (done()) return {};
  if (auto status = parse(); !status) return status;
  // The parser bounds the head and the body, but not the lines between chunks.
  if (!done() && pending_.size() > kMaxAnswerHeadBytes) {
    return fail(Reason::EngineRefused, "the container engine's answer cannot be read: a line without end");
  }
  return {};
}

Status AnswerReader::parse() {
  std::string_view left = pending_;
  while (!left.empty() && !parser_->is_done()) {
    if (parser_->is_between_chunks() && left.size() < kShortestChunk) break;
    const bool had_head = head_done();
    error_code error;
    const std::size_t used = parser_->put(boost::asio::buffer(left.data(), left.size()), error);
    left.remove_prefix(used);
    if (error && error != http::error::need_more) return malformed(error);
    if (used == 0 || head_done() != had_head) break;
  }
  pending_.erase(0, pending_.size() - left.size());
  return {};
}

Status AnswerReader::end() {
  if (done()) return {};
  error_code error;
  if (head_done() && pending_.empty()) {
    parser_->put_eof(error);
    if (!error) return {};
  }
  return fail(Reason::EngineUnavailable,
              "the container engine closed the connection before its answer was whole");
}

bool AnswerReader::head_done() const {
  return parser_->is_header_done();
}

bool AnswerReader::done() const {
  return parser_->is_done() || (head_done() && kind_ == BodyKind::Raw && good());
}

int AnswerReader::status() const {
  return parser_->status;
}

bool AnswerReader::good() const {
  const int status = parser_->status;
  return (status >= 200 && status < 300) || (kind_ == BodyKind::Raw && status == kSwitchingProtocols);
}

std::string AnswerReader::take_body() {
  if (kind_ == BodyKind::Raw && head_done() && good()) return std::exchange(pending_, {});
  return std::exchange(parser_->body, {});
}

}  // namespace sallyport::engine
