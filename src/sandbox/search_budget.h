// What a search of one mount may cost: it is the sandbox's to make it large, or deep.
#pragma once

#include <cstddef>
#include <string>

#include "sandbox/workspace_guard.h"

namespace sallyport::sandbox {

class SearchBudget {
 public:
  // For one more entry; false when there is none left.
  bool spend_on(const std::string& path) {
    path_bytes_ += path.size();
    return ++entries_ <= kMaxSearchedPerMount && path_bytes_ <= kMaxSearchedPathBytes;
  }

 private:
  std::size_t entries_ = 0;
  std::size_t path_bytes_ = 0;
};

}  // namespace sallyport::sandbox
