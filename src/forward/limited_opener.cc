#include "forward/limited_opener.h"

#include <algorithm>
#include <string>
#include <utility>

namespace sallyport::forward {
namespace {

constexpr const char* kUploadSpent = "the session's budget for upload is spent";
constexpr const char* kDownloadSpent = "the session's budget for download is spent";

// Both are asked before anything goes or when it has come: what is owed then keeps others from beginning.
Status spend_upload(Usage& usage, std::size_t bytes) {
  if (usage.upload.spend(net::Clock::now(), bytes)) return {};
  return fail(Reason::TooMany, kUploadSpent);
}
Status spend_download(Usage& usage, std::size_t bytes) {
  if (usage.download.spend(net::Clock::now(), bytes)) return {};
  return fail(Reason::TooMany, kDownloadSpent);
}

// An upstream's connection that speaks another protocol by now.
class MeteredStream final : public net::Stream {
 public:
  MeteredStream(std::unique_ptr<net::Stream> stream, Usage& usage)
      : stream_(std::move(stream)), usage_(usage) {}

  net::Task<Status> wait_readable() override { return stream_->wait_readable(); }
  net::Task<Result<std::size_t>> read_some(std::span<char> into) override {
    auto got = co_await stream_->read_some(into);
    if (!got) co_return got;
    if (auto spent = spend_download(usage_, *got); !spent) co_return fail(std::move(spent));
    co_return got;
  }
  net::Task<Status> write_all(std::string_view bytes) override {
    if (auto spent = spend_upload(usage_, bytes.size()); !spent) co_return spent;
    co_return co_await stream_->write_all(bytes);
  }
  net::Task<Status> shutdown_write() override { return stream_->shutdown_write(); }
  void stop_waiting() noexcept override { stream_->stop_waiting(); }
  void close() noexcept override { stream_->close(); }
  void limit_idle(net::Clock::duration limit) override { stream_->limit_idle(limit); }
  void limit_total(net::Clock::duration limit) override { stream_->limit_total(limit); }
  void no_limit() override { stream_->no_limit(); }

 private:
  std::unique_ptr<net::Stream> stream_;
  Usage& usage_;
};

class MeteredExchange final : public upstream::Exchange {
 public:
  MeteredExchange(std::unique_ptr<upstream::Exchange> exchange, Usage& usage)
      : exchange_(std::move(exchange)), usage_(usage) {}

  net::Task<Status> send_body(std::string_view bytes) override {
    if (auto spent = spend_upload(usage_, bytes.size()); !spent) co_return cut(std::move(spent));
    co_return co_await exchange_->send_body(bytes);
  }
  net::Task<Status> end_body() override { return exchange_->end_body(); }
  net::Task<Result<upstream::AnswerHead>> read_head() override {
    auto head = co_await exchange_->read_head();
    if (!head && !spent_) co_return std::unexpected(spent_.error());
    co_return head;
  }
  net::Task<Result<std::size_t>> read_body(std::span<char> into) override {
    auto got = co_await exchange_->read_body(into);
    if (!got && !spent_) co_return std::unexpected(spent_.error());
    if (!got) co_return got;
    if (auto spent = spend_download(usage_, *got); !spent) co_return fail(cut(std::move(spent)));
    co_return got;
  }
  Result<Switched> take_stream() override {
    auto switched = exchange_->take_stream();
    if (switched) switched->stream = std::make_unique<MeteredStream>(std::move(switched->stream), usage_);
    return switched;
  }
  void abort() noexcept override { exchange_->abort(); }

 private:
  // Whoever waits for the answer learns why there is none.
  Status cut(Status spent) {
    spent_ = spent;
    exchange_->abort();
    return spent;
  }

  std::unique_ptr<upstream::Exchange> exchange_;
  Usage& usage_;
  Status spent_;
};

}  // namespace

net::Task<Result<std::unique_ptr<upstream::Exchange>>> LimitedOpener::open(upstream::Request request) {
  const auto now = net::Clock::now();
  if (!usage_.upload.has_any(now)) co_return fail(Reason::TooMany, kUploadSpent);
  if (!usage_.download.has_any(now)) co_return fail(Reason::TooMany, kDownloadSpent);
  const auto slot = usage_.connects.take();
  if (!slot) {
    co_return fail(Reason::Overloaded,
                   std::to_string(usage_.connects.taken()) + " upstream connections are being made");
  }
  auto exchange = co_await opener_.open(std::move(request));
  if (!exchange || !usage_.counts_bytes) co_return exchange;
  co_return std::make_unique<MeteredExchange>(*std::move(exchange), usage_);
}

std::chrono::duration<double> LimitedOpener::time_to_retry() {
  const auto now = net::Clock::now();
  return std::max(usage_.upload.time_to_any(now), usage_.download.time_to_any(now));
}

}  // namespace sallyport::forward
