// The network namespace of a container, entered and shut by sallyport-netns.
#pragma once

#include <optional>

#include "base/fd.h"
#include "base/rate.h"
#include "base/result.h"
#include "os/netns.h"

namespace sallyport::container {

struct JoinedNamespace {
  os::NamespaceBuilder builder;
  os::Namespace namespaces;
};

Result<JoinedNamespace> join_namespace(const Fd& net);

// By redirection, or not at all: nothing else keeps what is pushed into the namespace later from being a way
// out.
Result<os::Doors> open_redirected_doors(os::NamespaceBuilder& builder,
                                        const std::optional<Rate>& new_connections);

}  // namespace sallyport::container
