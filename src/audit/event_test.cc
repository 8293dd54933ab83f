#include "audit/event.h"

#include <gtest/gtest.h>

namespace sallyport::audit {
namespace {

TEST(Sanitize, CutsTextsToTheirLimitsWithAMark) {
  Event event;
  event.path = std::string(Event::kMaxText + 1, 'p');
  event.host = std::string(Event::kMaxName + 1, 'h');
  event.detail = std::string(Event::kMaxText, 'd');
  sanitize(event);
  EXPECT_EQ(event.path, std::string(Event::kMaxText - 3, 'p') + "...");
  EXPECT_EQ(event.host, std::string(Event::kMaxName - 3, 'h') + "...");
  EXPECT_EQ(event.detail, std::string(Event::kMaxText, 'd'));
}

TEST(Sanitize, MasksATokenThatTheCutWouldHaveHalved) {
  const std::string token = "ghp_" + std::string(36, 'x');
  Event event;
  event.path = std::string(Event::kMaxText - 20, '/') + token;
  sanitize(event);
  EXPECT_TRUE(event.path.ends_with("/ghp_***"));
}

TEST(Sanitize, KeepsOnlyTheRefsThatFitAndTheirTotal) {
  Event event;
  event.refs.resize(Event::kMaxRefs + 1, RefChange{"refs/heads/a", "0", "1"});
  event.refs_total = Event::kMaxRefs + 1;
  sanitize(event);
  EXPECT_EQ(event.refs.size(), Event::kMaxRefs);
  EXPECT_EQ(event.refs_total, Event::kMaxRefs + 1);
}

TEST(Sanitize, TwiceChangesNothing) {
  Event event;
  event.path = "https://user:password@host/" + std::string(5000, 'x');
  event.refs.resize(100, RefChange{std::string(5000, 'r'), std::string(600, '0'), std::string(600, '1')});
  sanitize(event);
  const Event once = event;
  sanitize(event);
  EXPECT_EQ(event.path, once.path);
  ASSERT_EQ(event.refs.size(), once.refs.size());
  EXPECT_EQ(event.refs[0].ref, once.refs[0].ref);
}

TEST(RefsThatFit, IsAtLeastOneWhateverItsLength) {
  const RefChange huge{std::string(70'000, 'r'), std::string(70'000, '0'), std::string(70'000, '1')};
  const std::vector<RefChange> refs(100, huge);
  EXPECT_GE(refs_that_fit(refs), 1U);
  EXPECT_LT(refs_that_fit(refs), 10U);
  EXPECT_EQ(refs_that_fit({}), 0U);
}

}  // namespace
}  // namespace sallyport::audit
