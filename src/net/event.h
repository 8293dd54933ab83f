// A flag that one coroutine sets and others wait for. Once set it stays so.
#pragma once

#include <boost/asio/steady_timer.hpp>

#include "net/task.h"
#include "net/worker.h"

namespace sallyport::net {

class Event {
 public:
  explicit Event(Worker& worker);

  void set();
  bool is_set() const { return set_; }
  // The event must outlive those who wait.
  Task<> wait();
  // False when `limit` passed first.
  Task<bool> wait_for(Clock::duration limit);

 private:
  bool set_ = false;
  boost::asio::steady_timer timer_;  // never expires by itself under wait(); set() cancels it
};

}  // namespace sallyport::net
