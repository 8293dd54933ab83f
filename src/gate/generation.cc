#include "gate/generation.h"

#include <utility>

#include "forward/limited_opener.h"
#include "upstream/connector.h"
#include "upstream/direct.h"

namespace sallyport::gate {
namespace {

// Each part borrows from those above it.
struct Generation {
  Generation(const Lasting& lasting, std::shared_ptr<const policy::Grant> shared_grant,
             std::unique_ptr<upstream::Connector> made)
      : grant(std::move(shared_grant)),
        connector(std::move(made)),
        direct(*connector),
        limited_direct(direct, lasting.usage),
        git{*grant, lasting.recorder, lasting.vault, limited_direct, lasting.live},
        http{*grant, lasting.recorder, limited_direct, lasting.live},
        tunnels(lasting.worker, lasting.resolver, *grant, lasting.recorder, lasting.usage, lasting.live),
        gateways{git, http, &tunnels, lasting.usage} {}

  std::shared_ptr<const policy::Grant> grant;  // owners: this and the connector
  std::unique_ptr<upstream::Connector> connector;
  upstream::Direct direct;
  forward::LimitedOpener limited_direct;
  git::Context git;
  egress::HttpContext http;
  egress::Tunnels tunnels;
  Gateways gateways;
};

}  // namespace

Result<GatewaysInForce> put_in_force(const Lasting& lasting, std::shared_ptr<const policy::Grant> grant) {
  auto connector = upstream::Connector::make(lasting.worker, lasting.resolver, grant, lasting.system_roots);
  if (!connector) return fail(std::move(connector));
  auto generation = std::make_shared<Generation>(lasting, std::move(grant), *std::move(connector));
  const Gateways* gateways = &generation->gateways;
  return GatewaysInForce(std::move(generation), gateways);
}

}  // namespace sallyport::gate
