#include "audit/summary.h"

#include <gtest/gtest.h>

namespace sallyport::audit {
namespace {

Event event(Kind kind, Reason reason = Reason::None) {
  Event result;
  result.kind = kind;
  result.reason = reason;
  return result;
}

TEST(Summary, OfNothingSaysSo) {
  EXPECT_EQ(Summary().line(), "0 requests allowed, 0 refused");
}

TEST(Summary, CountsRefusalsAndFailuresByReason) {
  Summary summary;
  for (int i = 0; i < 2; ++i) summary.add(event(Kind::Refused, Reason::HostNotAllowed));
  summary.add(event(Kind::Refused, Reason::RepoNotGranted));
  summary.add(event(Kind::Begin));
  summary.add(event(Kind::End, Reason::UpstreamTimeout));
  summary.add(event(Kind::Alarm, Reason::VaultRefused));
  EXPECT_EQ(summary.line(),
            "1 request allowed, 3 refused (host_not_allowed 2, repo_not_granted 1), "
            "1 failed (upstream_timeout 1), 1 alarm");
  EXPECT_EQ(summary.allowed(), 1U);
  EXPECT_EQ(summary.refused(), 3U);
}

TEST(Summary, DoesNotCountGoodEndsAndFurtherLines) {
  Summary summary;
  for (const Kind kind : {Kind::End, Kind::Refs, Kind::Credential, Kind::SessionStart, Kind::SessionEnd}) {
    summary.add(event(kind));
  }
  EXPECT_EQ(summary.line(), "0 requests allowed, 0 refused");
}

}  // namespace
}  // namespace sallyport::audit
