#include "git/push.h"

#include <gtest/gtest.h>

#include "git/pktline.h"

namespace sallyport::git {
namespace {

using namespace std::string_literals;

const std::string kZero(40, '0');
const std::string kOne(40, '1');
const std::string kTwo(40, '2');
const std::string kCaps = "\0 report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5"s;

std::string list(const std::vector<std::string>& lines, std::string_view end = kFlushPkt) {
  std::string out;
  for (const std::string& line : lines) append_pkt(out, line);
  return out.append(end);
}

Result<PushCommands> read(std::string_view bytes, std::size_t* taken_out = nullptr) {
  PushReader reader;
  const auto taken = reader.feed(bytes);
  if (!taken) return fail(Result(taken));
  if (taken_out) *taken_out = *taken;
  if (!reader.finished()) return fail(Reason::ClientClosed, "not complete");
  return reader.take();
}

TEST(Push, ReadsWhatGitWrites) {
  const std::string bytes =
      list({"shallow " + kTwo + "\n", kZero + " " + kOne + " refs/heads/main" + kCaps,
            kOne + " " + kZero + " refs/heads/caf\xe9", kOne + " " + kTwo + " refs/tags/v1"});
  std::size_t taken = 0;
  const auto push = read(bytes + "PACK...", &taken);
  ASSERT_TRUE(push) << push.error().detail;
  EXPECT_EQ(taken, bytes.size());
  EXPECT_EQ(push->shallow, std::vector{kTwo});
  ASSERT_EQ(push->commands.size(), 3U);
  EXPECT_EQ(push->commands[0].ref, "refs/heads/main");
  EXPECT_EQ(push->commands[0].old_id, kZero);
  EXPECT_EQ(push->commands[0].new_id, kOne);
  EXPECT_TRUE(push->commands[1].deletes());
  EXPECT_EQ(push->commands[1].ref, "refs/heads/caf\xe9");
  EXPECT_TRUE(push->can("report-status-v2"));
  EXPECT_FALSE(push->can("report-status"));
  EXPECT_TRUE(push->has_pack());
  EXPECT_FALSE(push->probe());
  EXPECT_EQ(serialise(*push), bytes);
}

TEST(Push, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string bytes = list({"shallow " + kTwo, kZero + " " + kOne + " refs/heads/main" + kCaps,
                                  kOne + " " + kTwo + " refs/heads/b\n"});
  const std::string whole = serialise(read(bytes).value());
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    PushReader reader;
    ASSERT_EQ(reader.feed(bytes.substr(0, cut)).value(), cut);
    ASSERT_FALSE(reader.finished());
    ASSERT_EQ(reader.feed(bytes.substr(cut) + "0000PACK").value(), bytes.size() - cut);
    ASSERT_TRUE(reader.finished());
    ASSERT_EQ(serialise(reader.take()), whole) << cut;
  }
}

TEST(Push, KnowsAProbeAndADeletion) {
  EXPECT_TRUE(read("0000").value().probe());
  const auto deletion = read(list({kOne + " " + kZero + " refs/heads/x" + kCaps}));
  ASSERT_TRUE(deletion);
  EXPECT_FALSE(deletion->has_pack());
}

TEST(Push, ReadsSha256WhenItIsAnnounced) {
  const std::string old_id(64, '0');
  const std::string new_id(64, 'a');
  EXPECT_TRUE(read(list({old_id + " " + new_id + " refs/heads/x" + "\0object-format=sha256"s})));
}

TEST(Push, TakesThirtyThousandRefs) {
  std::vector<std::string> lines{kZero + " " + kOne + " refs/heads/first" + kCaps};
  for (int i = 0; i < 30'000; ++i) lines.push_back(kZero + " " + kOne + " refs/tags/v" + std::to_string(i));
  const std::string bytes = list(lines);
  const auto push = read(bytes);
  ASSERT_TRUE(push) << push.error().detail;
  EXPECT_EQ(push->commands.size(), 30'001U);
  EXPECT_EQ(serialise(*push), bytes);
}

TEST(Push, RefusesACertificateByItsName) {
  for (const std::string& first : {"push-cert\0report-status"s, "push-cert"s, "push-cert\n"s}) {
    const auto push = read(list({first}));
    ASSERT_FALSE(push);
    EXPECT_EQ(push.error().reason, Reason::PushCertificate);
  }
}

TEST(Push, ReadsAListThatAnnouncesPushOptions) {
  const auto push = read(list({kZero + " " + kOne + " refs/heads/x" + "\0report-status push-options"s}));
  ASSERT_TRUE(push) << push.error().detail;
  EXPECT_TRUE(push->has_options());
}

TEST(Push, RefusesEveryDeviation) {
  const std::string good = kZero + " " + kOne + " refs/heads/x";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"delim as the end", list({good}, "0001")},
      {"response end as the end", list({good}, "0002")},
      {"empty line", list({good, ""})},
      {"line of a newline", list({good, "\n"})},
      {"unknown capability", list({good + "\0 report-status evil"s})},
      {"capability with a byte over 127", list({good + "\0 report-status agent=\xff"s})},
      {"capability twice", list({good + "\0 quiet quiet"s})},
      {"agent twice", list({good + "\0 agent=a agent=b"s})},
      {"unknown object format", list({good + "\0 object-format=md5"s})},
      {"two spaces between capabilities", list({good + "\0 quiet  atomic"s})},
      {"second NUL", list({good + "\0 quiet\0 atomic"s})},
      {"capabilities on the second line", list({good, kZero + " " + kOne + " refs/heads/y" + kCaps})},
      {"capabilities on a shallow line", list({"shallow " + kOne + kCaps, good})},
      {"shallow behind a command", list({good, "shallow " + kOne})},
      {"shallow without a command", list({"shallow " + kOne})},
      {"short shallow id", list({"shallow 12", good})},
      {"upper-case id", list({kZero + " " + std::string(40, 'A') + " refs/heads/x"})},
      {"short id", list({std::string(39, '0') + " " + kOne + " refs/heads/x"})},
      {"ids of different length", list({kZero + " " + std::string(64, '1') + " refs/heads/x"})},
      {"sha256 ids unannounced", list({std::string(64, '0') + " " + std::string(64, '1') + " refs/heads/x"})},
      {"sha1 ids under sha256", list({good + "\0object-format=sha256"s})},
      {"two spaces", list({kZero + "  " + kOne + " refs/heads/x"})},
      {"tab", list({kZero + "\t" + kOne + " refs/heads/x"})},
      {"no ref", list({kZero + " " + kOne})},
      {"empty ref", list({kZero + " " + kOne + " "})},
      {"ref twice", list({good, kOne + " " + kTwo + " refs/heads/x"})},
      {"ref outside refs/", list({kZero + " " + kOne + " HEAD"})},
      {"only garbage", list({"garbage"})},
      {"a bad byte hides a ref", list({good + "\0 \xff\xfe"s, kZero + " " + kOne + " refs/heads/main"})},
      {"malformed length", "00zz"},
      {"length three", "0003"},
  };
  for (const auto& [what, bytes] : cases) {
    const auto push = read(bytes);
    ASSERT_FALSE(push) << what;
    EXPECT_EQ(push.error().reason, Reason::BadPush) << what << ": " << push.error().detail;
  }
}

TEST(Push, RefusesWhatGoesBeyondItsLimits) {
  PushReader too_many;
  std::string lines;
  for (std::size_t i = 0; i <= kMaxPushCommands; ++i) {
    append_pkt(lines, kZero + " " + kOne + " refs/heads/" + std::to_string(i));
  }
  EXPECT_EQ(too_many.feed(lines).error().reason, Reason::BadPush);

  PushReader too_long;
  std::string long_lines;
  while (long_lines.size() <= kMaxPushHeadBytes) {
    append_pkt(long_lines, kZero + " " + kOne + " refs/heads/" + std::to_string(long_lines.size()) +
                               std::string(kMaxRefBytes - 30, 'x'));
  }
  EXPECT_EQ(too_long.feed(long_lines).error().reason, Reason::BadPush);

  EXPECT_FALSE(read(list({kZero + " " + kOne + " refs/" + std::string(kMaxRefBytes, 'x')})));
}

TEST(RefName, FollowsCheckRefFormat) {
  for (const std::string ref :
       {"refs/heads/main", "refs/x", "refs/heads/a/b/c", "refs/heads/caf\xc3\xa9", "refs/heads/\xff",
        "refs/heads/@", "refs/heads/a.b", "refs/heads/{", "refs/heads/-x"}) {
    EXPECT_TRUE(is_ref_name(ref)) << ref;
  }
  for (const std::string& ref :
       {"HEAD"s,       "refs"s,       "refs/"s,           "refs//x"s,     "/refs/x"s,
        "refs/x/"s,    "refs/.x"s,    "refs/heads/.x/y"s, "refs/x.lock"s, "refs/x.lock/y"s,
        "refs/a..b"s,  "refs/a@{b"s,  "refs/a b"s,        "refs/a~b"s,    "refs/a^b"s,
        "refs/a:b"s,   "refs/a?b"s,   "refs/a*b"s,        "refs/a[b"s,    "refs/a\\b"s,
        "refs/a\x7f"s, "refs/a\x01"s, "refs/a\nb"s,       "refs/a."s,     "Refs/heads/x"s}) {
    EXPECT_FALSE(is_ref_name(ref)) << ref;
  }
}

}  // namespace
}  // namespace sallyport::git
