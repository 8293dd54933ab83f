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

TEST(WorkersPart, EndsWhateverWaitsWithADeadline) {
  Worker worker;
  Worker part(Worker::PartOf{worker});
  int gone = 0;
  const auto waits = [](Worker& home, Clock::duration limit, int& count) -> Task<> {
    // It tries again once, as one that says goodbye does.
    for (int i = 0; i < 2; ++i) {
      Event never(home);
      Deadline deadline(home, [&never] { never.set(); });
      if (limit == Clock::duration::max()) {
        deadline.set_at_end();
      } else {
        deadline.set(limit);
      }
      co_await never.wait();
      EXPECT_TRUE(deadline.expired());
    }
    ++count;
  };
  part.spawn("for an hour", waits(part, std::chrono::hours(1), gone));
  part.spawn("for ever", waits(part, Clock::duration::max(), gone));
  Worker other(Worker::PartOf{worker});
  int others_gone = 0;
  other.spawn("another's", waits(other, std::chrono::hours(1), others_gone));
  test::run(worker, worker.sleep(std::chrono::milliseconds(1)));
  EXPECT_EQ(part.children(), 2U);
  test::run(worker, part.end());
  EXPECT_EQ(gone, 2);
  EXPECT_EQ(part.children(), 0U);
  EXPECT_EQ(others_gone, 0);
  test::run(worker, other.end());
}

TEST(WorkersPart, MayGoWhileItsNextTickIsAwaited) {
  Worker worker;
  {
    Worker part(Worker::PartOf{worker});
    Deadline deadline(part, [] { FAIL() << "it was cleared"; });
    deadline.set(Clock::duration::zero());
  }
  test::run(worker, worker.sleep(2 * Deadline::kTick));
}

TEST(Deadline, DoesNotPassBeforeTheEnd) {
  Worker worker;
  Deadline at_end(worker, [] { FAIL() << "this worker does not end"; });
  at_end.set_at_end();
  Deadline other(worker, [&] { worker.stop(); });
  other.set(Clock::duration::zero());
  worker.run();
  EXPECT_FALSE(at_end.expired());
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
