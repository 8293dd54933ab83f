// Holds what goes to upstreams to the session's limits, whichever way it goes there: so many connections may
// be in the making at once, and so many bytes may go and come in a while.
#pragma once

#include <chrono>

#include "forward/usage.h"
#include "upstream/exchange.h"

namespace sallyport::forward {

class LimitedOpener final : public upstream::Opener {
 public:
  // Both outlive this and its exchanges.
  LimitedOpener(upstream::Opener& opener, Usage& usage) : opener_(opener), usage_(usage) {}

  // Beside what the other opener says: Overloaded when too many are being opened, TooMany when a budget is
  // spent. What spends one is cut off, with TooMany too.
  net::Task<Result<std::unique_ptr<upstream::Exchange>>> open(upstream::Request request) override;
  // Until neither budget is spent.
  std::chrono::duration<double> time_to_retry() override;

 private:
  upstream::Opener& opener_;
  Usage& usage_;
};

}  // namespace sallyport::forward
