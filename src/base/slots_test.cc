#include "base/slots.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sallyport {
namespace {

TEST(Slots, AreAsManyAsThereAre) {
  Slots slots(2);
  auto first = slots.take();
  const auto second = slots.take();
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(slots.take());
  EXPECT_EQ(slots.taken(), 2U);
  first.reset();
  EXPECT_TRUE(slots.take());
}

TEST(Slots, AreFreeOnceWhenTheyWereMoved) {
  Slots slots(1);
  {
    auto slot = slots.take();
    const std::vector<Slots::Slot> kept = [&] {
      std::vector<Slots::Slot> moved;
      moved.push_back(*std::move(slot));
      return moved;
    }();
    EXPECT_EQ(slots.taken(), 1U);
  }
  EXPECT_EQ(slots.taken(), 0U);
}

TEST(SlotsFor, CountEachKeyByItself) {
  SlotsFor<std::string> slots(1);
  auto a = slots.take("a");
  EXPECT_TRUE(a);
  EXPECT_FALSE(slots.take("a"));
  EXPECT_TRUE(slots.take("b"));
  EXPECT_EQ(slots.taken("a"), 1U);
  a.reset();
  EXPECT_TRUE(slots.take("a"));
}

TEST(SlotsFor, RememberNoKeyOfWhichNothingIsTaken) {
  SlotsFor<std::string> slots(1);
  SlotsFor<std::string> none(0);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(slots.take(std::to_string(i)));
    EXPECT_FALSE(none.take(std::to_string(i)));
  }
  EXPECT_EQ(slots.keys(), 0U);
  EXPECT_EQ(none.keys(), 0U);
}

}  // namespace
}  // namespace sallyport
