// The gate's own way upstream: requests that need no credential.
#pragma once

#include "upstream/connector.h"
#include "upstream/exchange.h"

namespace sallyport::upstream {

class Direct final : public Opener {
 public:
  // The connector outlives this.
  explicit Direct(Connector& connector) : connector_(connector) {}
  net::Task<Result<std::unique_ptr<Exchange>>> open(Request request) override;

 private:
  Connector& connector_;
};

}  // namespace sallyport::upstream
