#include "net/worker.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "net/event.h"
#include "net/test_support.h"

namespace sallyport::net {
namespace {

TEST(Worker, RunsChildrenUntilStopped) {
  Worker worker;
  std::string order;
  Event first(worker);
  worker.spawn("second", [](Event& before, std::string& out) -> Task<> {
    co_await before.wait();
    out += "b";
  }(first, order));
  worker.spawn("first", [](Event& done, std::string& out) -> Task<> {
    out += "a";
    done.set();
    co_return;
  }(first, order));
  EXPECT_EQ(worker.children(), 2U);
  test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(worker.children(), 0U);
}

TEST(WorkerDeathTest, AnExceptionThatLeavesAChildEndsTheProcessWithItsName) {
  EXPECT_DEATH(
      {
        Worker worker;
        worker.spawn("the broken child", []() -> Task<> {
          throw std::runtime_error("the bug");
          co_return;
        }());
        worker.run();
      },
      "the broken child: the bug");
}

TEST(Worker, DestroysWaitingChildren) {
  struct Guard {
    int& gone;
    ~Guard() { ++gone; }
  };
  int gone = 0;
  {
    Worker worker;
    Event never(worker);
    for (int i = 0; i < 2; ++i) {
      worker.spawn("waits", [](Worker& w, int& count) -> Task<> {
        const Guard guard{count};
        Deadline deadline(w, [] { FAIL() << "a deadline of a destroyed coroutine"; });
        deadline.set(std::chrono::hours(1));
        co_await w.sleep(std::chrono::hours(1));
      }(worker, gone));
    }
    test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
    EXPECT_EQ(worker.children(), 2U);
    EXPECT_EQ(gone, 0);
  }
  EXPECT_EQ(gone, 2);
}

TEST(Deadline, ExpiresOnceAndCanBeSetAgain) {
  Worker worker;
  int expired = 0;
  Deadline deadline(worker, [&] {
    if (++expired == 2) {
      worker.stop();
    } else {
      deadline.set(Clock::duration::zero());
    }
  });
  deadline.set(Clock::duration::zero());
  EXPECT_FALSE(deadline.expired());
  worker.run();
  EXPECT_EQ(expired, 2);
  EXPECT_TRUE(deadline.expired());
}

TEST(Deadline, ACallbackMayClearAndDestroyOthers) {
  Worker worker;
  int calls = 0;
  auto other = std::make_unique<Deadline>(worker, [&] { ++calls; });
  Deadline third(worker, [&] { ++calls; });
  // The list is looked at from the deadline that was set last.
  other->set(Clock::duration::zero());
  third.set(Clock::duration::zero());
  Deadline first(worker, [&] {
    other.reset();
    third.clear();
    worker.stop();
  });
  first.set(Clock::duration::zero());
  worker.run();
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(third.expired());
}

TEST(Event, TellsAnEventFromALimit) {
  Worker worker;
  Event event(worker);
  EXPECT_FALSE(test::run(worker, event.wait_for(std::chrono::milliseconds(1))));
  event.set();
  EXPECT_TRUE(test::run(worker, event.wait_for(std::chrono::hours(1))));
}

}  // namespace
}  // namespace sallyport::net
