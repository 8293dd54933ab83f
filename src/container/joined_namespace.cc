#include "container/joined_namespace.h"

#include <fmt/format.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <utility>

#include "os/process.h"

namespace sallyport::container {

namespace {

bool is_ours(const Fd& user_namespace) {
  struct stat its{};
  struct stat ours{};
  return ::fstat(user_namespace.get(), &its) == 0 && ::stat("/proc/self/ns/user", &ours) == 0 &&
         its.st_ino == ours.st_ino;
}

}  // namespace

Result<JoinedNamespace> join_namespace(const Fd& net) {
  auto helper = os::find_own_program("sallyport-netns");
  if (!helper) return fail(std::move(helper));
  const Fd owner(::ioctl(net.get(), NS_GET_USERNS));
  if (!owner) return fail_errno(Reason::Internal, "find the user namespace of the container's network");
  os::NamespaceBuilder::Spec spec{.helper = *helper, .join_net = net.get()};
  if (!is_ours(owner)) spec.join_user = owner.get();
  auto builder = os::NamespaceBuilder::start(spec);
  if (!builder) return fail(std::move(builder));
  auto namespaces = builder->namespaces();
  if (!namespaces) return fail(std::move(namespaces));
  return JoinedNamespace{std::move(*builder), std::move(*namespaces)};
}

Result<os::Doors> open_redirected_doors(os::NamespaceBuilder& builder,
                                        const std::optional<Rate>& new_connections) {
  auto doors = builder.open_doors(os::DoorWish::Redirect, new_connections);
  if (!doors || doors->mode == os::DoorMode::Redirect) return doors;
  return fail(Reason::Internal, fmt::format("nftables cannot be used in the container's network ({}), and is "
                                            "needed there",
                                            doors->fallback_reason));
}

}  // namespace sallyport::container
