#include "upstream/direct.h"

#include <utility>

namespace sallyport::upstream {

net::Task<Result<std::unique_ptr<Exchange>>> Direct::open(Request request) {
  return connector_.open(std::move(request), Credential{});
}

}  // namespace sallyport::upstream
