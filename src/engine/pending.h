// What was asked of the engine, and is not answered yet.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"

namespace sallyport::engine {

class Pending {
 public:
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  virtual ~Pending() = default;
};

// Who asks keeps it: destroying it cancels, and then nobody is called back (the engine may have done what it
// was asked all the same). It may be destroyed by its own callback, and shall be before its Client.
using Call = std::unique_ptr<Pending>;

// Called once, from the event loop, never before the function that was given it has returned.
template <class T>
using On = std::function<void(Result<T>)>;
using OnDone = std::function<void(Status)>;

}  // namespace sallyport::engine
