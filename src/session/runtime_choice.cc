#include "session/runtime_choice.h"

#include <utility>

#include "container/adopted_runtime.h"
#include "container/container_runtime.h"
#include "sandbox/bubblewrap_runtime.h"

namespace sallyport::session {

Result<std::unique_ptr<sandbox::Runtime>> choose_runtime(os::EventLoop& loop, Gateway& gateway,
                                                         const Request& request, const Plan& plan,
                                                         const std::string& session,
                                                         sandbox::Runtime::OnEnd on_end) {
  if (request.image.empty() && request.adopted.empty()) {
    return std::make_unique<sandbox::BubblewrapRuntime>(loop, plan.identities.sandbox,
                                                        plan.identities.become_sandbox, std::move(on_end));
  }
  if (!gateway.containers()) {
    return fail(Reason::BadRequest, "containers are made by a daemon: start one with `sallyportd`");
  }
  if (!request.adopted.empty()) {
    return std::make_unique<container::AdoptedRuntime>(
        loop, *gateway.containers(),
        container::AdoptedRuntime::Wish{
            .session = session, .container = request.adopted, .ids = plan.identities.sandbox},
        std::move(on_end));
  }
  return std::make_unique<container::ContainerRuntime>(
      loop, *gateway.containers(),
      container::ContainerRuntime::Wish{.session = session,
                                        .image = request.image,
                                        .ids = plan.identities.sandbox,
                                        .home = plan.identities.home,
                                        .limits = request.limits,
                                        .set_environment = request.extra_environment},
      std::move(on_end));
}

}  // namespace sallyport::session
