#include "upstream/connector.h"

#include <openssl/ssl.h>

#include <utility>

#include "upstream/http_exchange.h"

namespace sallyport::upstream {
namespace {

using Opened = Result<std::unique_ptr<HttpExchange>>;

PoolKey pool_key(const Request& request, const Credential& credential) {
  return {request.host, request.port, credential.name, request.scheme};
}

// On a reused connection, for a request without body: servers close idle connections when they like, and that
// may cross our request. One more try on a new connection, if not a byte of an answer has come.
class RetryingExchange final : public Exchange {
 public:
  using OpenAgain = std::function<net::Task<Opened>()>;

  RetryingExchange(std::unique_ptr<HttpExchange> first, OpenAgain again)
      : exchange_(std::move(first)), again_(std::move(again)) {}

  net::Task<Status> send_body(std::string_view bytes) override { return exchange_->send_body(bytes); }
  net::Task<Status> end_body() override { return exchange_->end_body(); }
  net::Task<Result<std::size_t>> read_body(std::span<char> into) override {
    return exchange_->read_body(into);
  }

  Result<Switched> take_stream() override { return exchange_->take_stream(); }

  void abort() noexcept override {
    aborted_ = true;
    exchange_->abort();
  }

  net::Task<Result<AnswerHead>> read_head() override {
    auto head = co_await exchange_->read_head();
    const OpenAgain again = std::exchange(again_, nullptr);  // with the credential it holds
    const bool stale =
        !aborted_ && !head && head.error().reason == Reason::UpstreamClosed && exchange_->untouched();
    if (!stale || !again) co_return head;
    auto opened = co_await again();
    if (!opened) co_return fail(std::move(opened));
    exchange_ = std::move(*opened);
    if (aborted_) exchange_->abort();
    if (auto ended = co_await exchange_->end_body(); !ended) co_return fail(std::move(ended));
    co_return co_await exchange_->read_head();
  }

 private:
  std::unique_ptr<HttpExchange> exchange_;
  OpenAgain again_;
  bool aborted_ = false;
};

}  // namespace

Connector::Connector(net::Worker& worker, net::Resolver& resolver, std::shared_ptr<const policy::Grant> grant)
    : worker_(worker), resolver_(resolver), grant_(std::move(grant)), pool_(std::make_shared<Pool>(worker)) {}

Result<std::unique_ptr<Connector>> Connector::make(net::Worker& worker, net::Resolver& resolver,
                                                   std::shared_ptr<const policy::Grant> grant,
                                                   SSL_CTX* system_roots) {
  std::unique_ptr<Connector> connector(new Connector(worker, resolver, std::move(grant)));
  if (system_roots != nullptr && SSL_CTX_up_ref(system_roots) == 1) {
    connector->contexts_.emplace("", net::SslContext(system_roots));
  }
  const policy::Grant& named = *connector->grant_;
  for (const auto* hosts : {&named.hosts, &named.hosts_below}) {
    for (const auto& [name, host] : *hosts) {
      Status added = connector->add_context(host.ca_pem);
      if (!added) return fail(added.error().reason, name.str() + ": " + added.error().detail);
    }
  }
  // Hosts without an entry.
  if (!named.allow.empty()) {
    if (Status added = connector->add_context(policy::UpstreamHost{}.ca_pem); !added)
      return fail(std::move(added));
  }
  return connector;
}

Status Connector::add_context(const std::string& ca_pem) {
  if (contexts_.contains(ca_pem)) return {};
  auto context = net::make_client_context(ca_pem);
  if (!context) return fail(std::move(context));
  contexts_.emplace(ca_pem, std::move(*context));
  return {};
}

void Connector::drop_credential(const std::string& credential) {
  pool_->drop_credential(credential);
  resumption_.drop_credential(credential);
}

net::Task<Result<std::unique_ptr<net::Stream>>> Connector::connect(PoolKey key) {
  const policy::UpstreamHost& host = grant_->upstream(key.host);
  auto dialled = co_await net::dial(worker_, resolver_, key.host, key.port, host, grant_->timeouts.connect);
  if (!dialled) co_return fail(std::move(dialled));
  if (key.scheme == Scheme::Http) {
    co_return net::make_socket_stream(worker_, std::move(dialled->socket), net::Peer::Upstream);
  }
  SSL_CTX& context = *contexts_.at(host.ca_pem);
  co_return co_await net::connect_tls(worker_, context, std::move(dialled->socket), key.host,
                                      grant_->timeouts.tls, resumption_.of(key));
}

net::Task<Result<std::unique_ptr<HttpExchange>>> Connector::open_new(Request request, std::string head,
                                                                     Credential credential) {
  auto stream = co_await connect(pool_key(request, credential));
  if (!stream) co_return fail(std::move(stream));
  co_return co_await start(std::move(*stream), request, std::move(head), credential);
}

net::Task<Result<std::unique_ptr<HttpExchange>>> Connector::start(std::unique_ptr<net::Stream> stream,
                                                                  const Request& request, std::string head,
                                                                  const Credential& credential) {
  if (request.still_wanted && !request.still_wanted()) co_return fail(Reason::Revoked, "");
  HttpExchange::GiveBack give_back =
      [pool = std::weak_ptr(pool_), key = pool_key(request, credential)](std::unique_ptr<net::Stream> used) {
        if (const auto open_pool = pool.lock()) open_pool->put(key, std::move(used));
      };
  auto exchange =
      std::make_unique<HttpExchange>(std::move(stream), request, grant_->timeouts, std::move(give_back));
  auto sent = co_await exchange->send_head(std::move(head), credential.line.get());
  // The upstream may have said why before it hung up: its answer is still to be read. What we refuse
  // ourselves is final.
  if (!sent && sent.error().origin() != Origin::Upstream) co_return fail(std::move(sent));
  co_return exchange;
}

net::Task<Result<std::unique_ptr<Exchange>>> Connector::open(Request request, Credential credential) {
  auto head = request_head(request, credential.line ? Carries::Credential : Carries::Nothing);
  if (!head) co_return fail(std::move(head));
  auto idle = pool_->take(pool_key(request, credential));
  if (!idle) {
    auto opened = co_await open_new(std::move(request), std::move(*head), std::move(credential));
    if (!opened) co_return fail(std::move(opened));
    co_return std::move(*opened);
  }
  auto opened = co_await start(std::move(idle), request, *head, credential);
  if (!opened) co_return fail(std::move(opened));
  if (request.body != BodyKind::None) co_return std::move(*opened);
  co_return std::make_unique<RetryingExchange>(
      std::move(*opened),
      [this, request = std::move(request), head = std::move(*head), credential = std::move(credential)] {
        return open_new(request, head, credential);
      });
}

}  // namespace sallyport::upstream
