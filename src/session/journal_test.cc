#include "session/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "base/text.h"
#include "os/safe_path.h"

namespace sallyport::session {
namespace {

using testing::HasSubstr;
using testing::Not;

std::chrono::system_clock::time_point noon() {
  return std::chrono::system_clock::time_point(std::chrono::hours(12));
}

audit::Event event(audit::Kind kind, const std::string& request, Reason reason = Reason::None) {
  audit::Event result;
  result.kind = kind;
  result.request = request;
  result.host = "github.com";
  result.reason = reason;
  return result;
}

// A journal on a memory file, which can be made to take no further byte.
class JournalTest : public testing::Test {
 protected:
  JournalTest() : file_(::memfd_create("audit", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    ::fcntl(file_.get(), F_SETFL, O_APPEND);
    journal_.emplace(audit::Sink(Fd(::dup(file_.get())), noon), "session-1");
  }

  void restart(Journal::Limits limits) {
    journal_.emplace(audit::Sink(Fd(::dup(file_.get())), noon), "session-1", limits);
  }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(::lseek(file_.get(), 0, SEEK_END)); }
  void fill() const { ASSERT_EQ(::fcntl(file_.get(), F_ADD_SEALS, F_SEAL_GROW), 0); }

  std::vector<std::string> lines() const {
    ::lseek(file_.get(), 0, SEEK_SET);
    const std::string text = os::read_whole(file_.get(), std::size_t{16} * 1024 * 1024).value();
    std::vector<std::string> result;
    for (const std::string_view line : split(text, '\n')) {
      if (!line.empty()) result.emplace_back(line);
    }
    return result;
  }

  Fd file_;
  std::optional<Journal> journal_;
};

TEST_F(JournalTest, KnowsHowOftenACredentialWasGiven) {
  ASSERT_TRUE(journal_->append(event(audit::Kind::Credential, "r1")));
  ASSERT_TRUE(journal_->append(event(audit::Kind::Credential, "r2", Reason::UsesSpent)));
  EXPECT_EQ(journal_->credential_uses(), 1U);
}

TEST_F(JournalTest, CountsAllInAMeterAlsoWhatGotNoLine) {
  audit::Meter meter;
  journal_->count_in(meter);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(
        journal_->append(event(audit::Kind::Refused, "r" + std::to_string(i), Reason::HostNotAllowed)));
  }
  ASSERT_TRUE(journal_->append(event(audit::Kind::Begin, "open")));
  journal_->end_open_requests({Reason::ProcessDied, "died"});
  EXPECT_EQ(meter.refused().at(static_cast<std::size_t>(Reason::HostNotAllowed)), 1000U);
  EXPECT_EQ(meter.allowed(), 1U);
  EXPECT_EQ(meter.ended().at(static_cast<std::size_t>(Reason::ProcessDied)), 1U);
}

TEST_F(JournalTest, CountsUsesOfACredentialThatAnUpstreamTook) {
  const auto ask = [this](const std::string& credential, int status, Reason reason = Reason::None) {
    audit::Event begin = event(audit::Kind::Begin, "r");
    begin.credential = credential;
    EXPECT_TRUE(journal_->append(begin));
    audit::Event end = event(audit::Kind::End, "r", reason);
    end.status = status;
    EXPECT_TRUE(journal_->append(end));
  };
  ask("", 200);
  ask("forge", 401);
  ask("forge", 500);
  ask("forge", 0);
  ask("forge", 200, Reason::UpstreamTruncated);
  audit::Event stray = event(audit::Kind::End, "never begun");
  stray.status = 200;
  EXPECT_TRUE(journal_->append(stray));
  EXPECT_EQ(journal_->credentialed_uses(), 0U);
  ask("forge", 200);
  ask("forge", 304);
  EXPECT_EQ(journal_->credentialed_uses(), 2U);
}

TEST_F(JournalTest, FollowsARequestFromItsBeginToItsEnd) {
  EXPECT_TRUE(journal_->append(event(audit::Kind::Begin, "r1")));
  EXPECT_TRUE(journal_->append(event(audit::Kind::Begin, "r2")));
  EXPECT_EQ(journal_->open_requests(), 2U);
  EXPECT_TRUE(journal_->append(event(audit::Kind::Refs, "r1")));
  EXPECT_TRUE(journal_->append(event(audit::Kind::Refused, "r3", Reason::HostNotAllowed)));
  EXPECT_TRUE(journal_->append(event(audit::Kind::End, "unknown")));
  EXPECT_EQ(journal_->open_requests(), 2U);
  EXPECT_TRUE(journal_->append(event(audit::Kind::End, "r1")));
  EXPECT_EQ(journal_->open_requests(), 1U);
  EXPECT_EQ(journal_->summary().allowed(), 2U);
  EXPECT_EQ(journal_->summary().refused(), 1U);
  EXPECT_EQ(lines().size(), 6U);
  EXPECT_THAT(lines().front(), HasSubstr(R"("session":"session-1")"));
}

TEST_F(JournalTest, EndsWhatIsStillOpen) {
  audit::Event push = event(audit::Kind::Begin, "r1");
  push.refs = {{.ref = "refs/heads/main", .old_id = "1", .new_id = "2"}};
  push.refs_total = 1;
  ASSERT_TRUE(journal_->append(push));
  ASSERT_TRUE(journal_->append(event(audit::Kind::Begin, "r2")));
  ASSERT_TRUE(journal_->append(event(audit::Kind::End, "r2")));
  journal_->end_open_requests({Reason::ProcessDied, "the gate died"});

  EXPECT_EQ(journal_->open_requests(), 0U);
  const auto all = lines();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_THAT(all[0], HasSubstr("refs/heads/main"));
  EXPECT_THAT(all[3], HasSubstr(R"("kind":"end")"));
  EXPECT_THAT(all[3], HasSubstr(R"("r1")"));
  EXPECT_THAT(all[3], HasSubstr(R"("process_died")"));
  EXPECT_THAT(all[3], HasSubstr("the gate died"));
  EXPECT_THAT(all[3], Not(HasSubstr("refs/heads/main")));
  EXPECT_THAT(journal_->summary().line(), HasSubstr("process_died 1"));

  journal_->end_open_requests({Reason::SessionEnded, "again"});
  EXPECT_EQ(lines().size(), 4U);
}

TEST_F(JournalTest, RefusesABeginBeyondItsLimitAndNothingElse) {
  for (std::size_t i = 0; i < Journal::kMaxOpen; ++i) {
    ASSERT_TRUE(journal_->append(event(audit::Kind::Begin, std::to_string(i))));
  }
  const Status refused = journal_->append(event(audit::Kind::Begin, "one more"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, Reason::Overloaded);
  EXPECT_EQ(journal_->open_requests(), Journal::kMaxOpen);
  EXPECT_EQ(journal_->summary().allowed(), Journal::kMaxOpen);
  EXPECT_EQ(lines().size(), Journal::kMaxOpen);

  EXPECT_TRUE(journal_->append(event(audit::Kind::Refused, "r", Reason::HostNotAllowed)));
  EXPECT_TRUE(journal_->append(event(audit::Kind::End, "0")));
  EXPECT_TRUE(journal_->append(event(audit::Kind::Begin, "one more")));
}

TEST_F(JournalTest, GivesTheFirstRefusalsALineAndCountsTheRest) {
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(journal_->append(event(audit::Kind::Refused, "r", Reason::HostNotAllowed)));
  }
  EXPECT_TRUE(journal_->append(event(audit::Kind::Refused, "other", Reason::IpLiteral)));
  EXPECT_EQ(lines().size(), audit::Coalescer::kBurst + 1);
  EXPECT_THAT(lines().back(), HasSubstr("other"));

  journal_->tell_coalesced();
  EXPECT_EQ(lines().size(), audit::Coalescer::kBurst + 2);
  EXPECT_THAT(lines().back(), HasSubstr(R"("kind":"coalesced","of":"refused","entry":"",)"
                                        R"("reason":"host_not_allowed","count":9950,)"));
  EXPECT_EQ(journal_->summary().refused(), 10'001U);
}

TEST_F(JournalTest, NeverCoalescesWhatWasAllowed) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(journal_->append(event(audit::Kind::Begin, std::to_string(i))));
    ASSERT_TRUE(journal_->append(event(audit::Kind::Credential, std::to_string(i))));
    ASSERT_TRUE(journal_->append(event(audit::Kind::End, std::to_string(i))));
  }
  EXPECT_EQ(lines().size(), 600U);
}

TEST_F(JournalTest, WritesNoMoreBytesOfRefusalsThanItsLimit) {
  const std::uint64_t limit = 100'000;
  restart({.refusal_bytes = limit});
  audit::Event refused = event(audit::Kind::Refused, "r", Reason::HostNotAllowed);
  refused.detail.assign(3000, 'x');
  for (int interval = 0; interval < 50; ++interval) {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(journal_->append(refused));
    journal_->tell_coalesced();
  }
  EXPECT_GT(bytes(), limit);
  EXPECT_LT(bytes(), limit + 20'000) << "one line more, and the counts";
  EXPECT_EQ(journal_->summary().refused(), 2500U);
  EXPECT_TRUE(journal_->append(event(audit::Kind::Begin, "r1"))) << "what is allowed has its own limit";
}

TEST_F(JournalTest, AllowsNothingMorePastItsLimitAndEndsWhatWasBegun) {
  restart({.bytes = 10'000});
  ASSERT_TRUE(journal_->append(event(audit::Kind::Begin, "first")));
  Status status;
  for (int i = 0; i < 1000 && status; ++i)
    status = journal_->append(event(audit::Kind::Begin, std::to_string(i)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, Reason::AuditUnavailable);
  // A gate that was taken over.
  for (const audit::Kind kind : {audit::Kind::Begin, audit::Kind::Refs, audit::Kind::Credential}) {
    EXPECT_FALSE(journal_->append(event(kind, "first")));
  }
  EXPECT_FALSE(journal_->append(event(audit::Kind::End, "never begun")));
  EXPECT_TRUE(journal_->append(event(audit::Kind::End, "first")));
  EXPECT_FALSE(journal_->append(event(audit::Kind::End, "first")));
  EXPECT_TRUE(journal_->append(event(audit::Kind::SessionEnd, "")));
  journal_->end_open_requests({Reason::SessionEnded, ""});
  EXPECT_EQ(journal_->open_requests(), 0U);
  EXPECT_THAT(lines().back(), HasSubstr(R"("kind":"end")"));
}

TEST_F(JournalTest, CountsNothingThatCouldNotBeWritten) {
  ASSERT_TRUE(journal_->append(event(audit::Kind::Begin, "r1")));
  fill();
  const audit::Event events[] = {event(audit::Kind::Begin, "r2"), event(audit::Kind::End, "r1"),
                                 event(audit::Kind::Refused, "r3", Reason::HostNotAllowed)};
  for (const audit::Event& each : events) {
    const Status refused = journal_->append(each);
    ASSERT_FALSE(refused) << each.request;
    EXPECT_EQ(refused.error().reason, Reason::AuditUnavailable);
  }
  EXPECT_EQ(journal_->open_requests(), 1U);
  EXPECT_EQ(journal_->summary().allowed(), 1U);
  EXPECT_EQ(journal_->summary().refused(), 0U);

  const std::string before = journal_->summary().line();
  journal_->end_open_requests({Reason::SessionEnded, "the log is full"});
  EXPECT_EQ(journal_->summary().line(), before);
  EXPECT_EQ(lines().size(), 1U);
}

}  // namespace
}  // namespace sallyport::session
