// Which kind of sandbox a request gets.
#pragma once

#include <memory>
#include <string>

#include "os/event_loop.h"
#include "sandbox/runtime.h"
#include "session/gateway.h"
#include "session/plan.h"
#include "session/request.h"

namespace sallyport::session {

// A container of the image that it names, the container that it adopts, or bubblewrap's without one.
Result<std::unique_ptr<sandbox::Runtime>> choose_runtime(os::EventLoop& loop, Gateway& gateway,
                                                         const Request& request, const Plan& plan,
                                                         const std::string& session,
                                                         sandbox::Runtime::OnEnd on_end);

}  // namespace sallyport::session
