#include "egress/relay.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

namespace sallyport::egress {
namespace {

namespace asio = boost::asio;

net::Task<Status> copy(net::Stream& from, net::Stream& to, std::string early, std::uint64_t& moved) {
  std::string bytes = std::move(early);
  for (;;) {
    moved += bytes.size();
    if (!bytes.empty()) {
      if (auto written = co_await to.write_all(bytes); !written) co_return written;
    }
    std::string().swap(bytes);  // assigning an empty one would keep the memory
    if (auto ready = co_await from.wait_readable(); !ready) co_return ready;
    bytes.resize(kMaxRelayBytes);
    const auto got = co_await from.read_some(bytes);
    if (!got) co_return fail(Result(got));
    if (*got == 0) co_return co_await to.shutdown_write();
    bytes.resize(*got);
  }
}

// The first failure is the cause; the other direction then fails because of the closing.
net::Task<> move(net::Stream& from, net::Stream& to, std::string early, std::uint64_t& moved, Error& error) {
  auto copied = co_await copy(from, to, std::move(early), moved);
  if (copied) co_return;
  if (error.reason == Reason::None) error = std::move(copied).error();
  from.close();
  to.close();
}

}  // namespace

net::Task<Relayed> relay(RelayEnd first, RelayEnd second) {
  Relayed relayed;
  const auto executor = co_await asio::this_coro::executor;
  auto group = asio::experimental::make_parallel_group(
      asio::co_spawn(
          executor,
          move(first.stream, second.stream, std::move(first.early), relayed.from_first, relayed.error),
          asio::deferred),
      asio::co_spawn(
          executor,
          move(second.stream, first.stream, std::move(second.early), relayed.from_second, relayed.error),
          asio::deferred));
  const auto [order, first_exception, second_exception] =
      co_await group.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
  (void)order;
  if (first_exception) std::rethrow_exception(first_exception);
  if (second_exception) std::rethrow_exception(second_exception);
  co_return relayed;
}

}  // namespace sallyport::egress
