#include "net/event.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace sallyport::net {

namespace asio = boost::asio;

Event::Event(Worker& worker) : timer_(worker.io(), Clock::time_point::max()) {}

void Event::set() {
  set_ = true;
  timer_.cancel();
}

Task<> Event::wait() {
  while (!set_) {
    boost::system::error_code ignored;
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

Task<bool> Event::wait_for(Clock::duration limit) {
  if (!set_) {
    boost::system::error_code ignored;
    asio::steady_timer& timer = timer_;
    timer.expires_after(limit);
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return set_;
}

}  // namespace sallyport::net
