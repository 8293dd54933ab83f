// The coroutine type of everything that waits.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace sallyport::net {

template <class T = void>
using Task = boost::asio::awaitable<T>;

}  // namespace sallyport::net
