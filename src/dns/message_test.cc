#include "dns/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "dns/testing.h"

namespace sallyport::dns {
namespace {

using namespace std::string_literals;
using testing::kOpt;
using testing::make_query;
using testing::raw_query;

TEST(ParseQuery, ReadsNameTypeClassAndKeepsTheQuestionAsItCame) {
  const auto query = parse_query(make_query("Api.OK.test", 28));
  ASSERT_TRUE(query) << query.error().detail;
  EXPECT_EQ(query->id, 0x1234);
  EXPECT_TRUE(query->recursion_desired);
  EXPECT_EQ(query->name, "Api.OK.test");
  EXPECT_EQ(query->type, 28);
  EXPECT_EQ(query->klass, kClassIn);
  EXPECT_EQ(query->question, "\x03"s + "Api\x02" + "OK\x04" + "test\0\0\x1c\0\x01"s);
  EXPECT_FALSE(query->has_edns);
}

TEST(ParseQuery, WritesOddBytesOfALabelSoThatTheyCannotPassForDotsOrEnds) {
  const auto query =
      parse_query(raw_query("\x05"
                            "a.b\0c\x04test\0"s,
                            kTypeA));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->name, "a\\046b\\000c.test");
}

TEST(ParseQuery, TakesTheRootAndTheLongestName) {
  EXPECT_EQ(parse_query(raw_query("\0"s, 2))->name, "");
  std::string longest;
  for (int i = 0; i < 3; ++i) longest += "\x3f" + std::string(63, 'a');
  longest += "\x3d" + std::string(61, 'b') + "\0"s;
  ASSERT_EQ(longest.size(), 255U);
  EXPECT_TRUE(parse_query(raw_query(longest, kTypeA)));
}

TEST(ParseQuery, TakesOneOptRecordWithUnknownOptions) {
  const std::string cookie_and_padding =
      "\0\x0a\0\x08"
      "12345678"
      "\0\x0c\0\x03\0\0\0"s;
  std::string opt = "\0\0\x29\xff\xff\0\0\0\0"s;
  opt += '\0';
  opt += static_cast<char>(cookie_and_padding.size());
  const auto query = parse_query(make_query("api.ok.test", kTypeA, {.additional = opt + cookie_and_padding}));
  ASSERT_TRUE(query) << query.error().detail;
  EXPECT_TRUE(query->has_edns);
}

TEST(ParseQuery, RefusesEveryMalformedQuery) {
  using enum NoQuery::What;
  struct Case {
    std::string_view why;
    std::string bytes;
    NoQuery::What what;
    Rcode rcode;
  };
  const std::string good = make_query("api.ok.test", kTypeA);
  const std::string name =
      "\x03"
      "api\x02"
      "ok\x04"
      "test\0"s;
  const std::vector<Case> cases{
      {"nothing", "", Drop, {}},
      {"eleven bytes", good.substr(0, 11), Drop, {}},
      {"an answer", make_query("api.ok.test", kTypeA, {.flags = 0x8100}), Drop, {}},
      {"opcode NOTIFY", make_query("api.ok.test", kTypeA, {.flags = 0x2100}), Answer, Rcode::NotImp},
      {"a header alone", good.substr(0, 12), Answer, Rcode::FormErr},
      {"no question", make_query("api.ok.test", kTypeA, {.questions = 0}), Answer, Rcode::FormErr},
      {"two questions", make_query("api.ok.test", kTypeA, {.questions = 2}), Answer, Rcode::FormErr},
      {"an answer record", make_query("api.ok.test", kTypeA, {.answers = 1}), Answer, Rcode::FormErr},
      {"an authority record", make_query("api.ok.test", kTypeA, {.authorities = 1}), Answer, Rcode::FormErr},
      {"pointer to itself", raw_query("\xc0\x0c", kTypeA), Answer, Rcode::FormErr},
      {"pointer forward", raw_query("\xc0\x0e", kTypeA), Answer, Rcode::FormErr},
      {"pointer past the end", raw_query("\xc0\xff", kTypeA), Answer, Rcode::FormErr},
      {"pointer behind a label",
       raw_query("\x03"
                 "api\xc0\x0c",
                 kTypeA),
       Answer, Rcode::FormErr},
      {"two pointers in a loop", raw_query("\xc0\x0e\xc0\x0c", kTypeA), Answer, Rcode::FormErr},
      {"label type 0x40",
       raw_query("\x41"
                 "a\0"s,
                 kTypeA),
       Answer, Rcode::FormErr},
      {"label type 0x80",
       raw_query("\x81"
                 "a\0"s,
                 kTypeA),
       Answer, Rcode::FormErr},
      {"label of 64 bytes", raw_query("\x40" + std::string(64, 'a') + "\0"s, kTypeA), Answer, Rcode::FormErr},
      {"name of 256 bytes",
       raw_query("\x3f" + std::string(63, 'a') + "\x3f" + std::string(63, 'a') + "\x3f" +
                     std::string(63, 'a') + "\x3e" + std::string(62, 'a') + "\0"s,
                 kTypeA),
       Answer, Rcode::FormErr},
      {"label cut", good.substr(0, 15), Answer, Rcode::FormErr},
      {"name without its end", good.substr(0, 12 + name.size() - 1), Answer, Rcode::FormErr},
      {"question cut", good.substr(0, good.size() - 1), Answer, Rcode::FormErr},
      {"one byte behind it", good + "x", Answer, Rcode::FormErr},
      {"OPT announced and missing", make_query("api.ok.test", kTypeA, {.additionals = 1}), Answer,
       Rcode::FormErr},
      {"OPT not announced", good + kOpt, Answer, Rcode::FormErr},
      {"two OPT records", make_query("api.ok.test", kTypeA, {.additionals = 2, .additional = kOpt + kOpt}),
       Answer, Rcode::FormErr},
      {"OPT with an owner name",
       make_query("api.ok.test", kTypeA,
                  {.additional = "\x01"
                                 "a" +
                                 kOpt}),
       Answer, Rcode::FormErr},
      {"OPT owner is a pointer",
       make_query("api.ok.test", kTypeA, {.additional = "\xc0\x0c" + kOpt.substr(1)}), Answer,
       Rcode::FormErr},
      {"an additional TSIG", make_query("api.ok.test", kTypeA, {.additional = "\0\0\xfa\0\xff\0\0\0\0\0\0"s}),
       Answer, Rcode::FormErr},
      {"OPT data cut",
       make_query("api.ok.test", kTypeA, {.additional = "\0\0\x29\x04\xd0\0\0\0\0\0\x05\0\x0a"s}), Answer,
       Rcode::FormErr},
      {"option longer than OPT",
       make_query("api.ok.test", kTypeA, {.additional = "\0\0\x29\x04\xd0\0\0\0\0\0\x05\0\x0a\0\x02x"s}),
       Answer, Rcode::FormErr},
      {"EDNS version 1", make_query("api.ok.test", kTypeA, {.additional = "\0\0\x29\x04\xd0\0\x01\0\0\0\0"s}),
       Answer, Rcode::BadVers},
      {"64 KiB of options",
       make_query(
           "api.ok.test", kTypeA,
           {.additional = "\0\0\x29\xff\xff\0\0\0\0\xff\xf0\0\x0c\xff\xec"s + std::string(65516, 'x')}),
       Answer, Rcode::FormErr},
      {"OPT as the question", make_query("api.ok.test", kTypeOpt), Answer, Rcode::FormErr},
  };
  for (const auto& test : cases) {
    const auto query = parse_query(test.bytes);
    ASSERT_FALSE(query) << test.why;
    EXPECT_EQ(query.error().what, test.what) << test.why;
    EXPECT_FALSE(query.error().detail.empty()) << test.why;
    if (test.what != Answer) continue;
    EXPECT_EQ(query.error().rcode, test.rcode) << test.why << ": " << query.error().detail;
    EXPECT_EQ(query.error().id, 0x1234) << test.why;
  }
}

TEST(ParseQuery, NeverAcceptsACutQuery) {
  const std::string whole = make_query("api.ok.test", kTypeA, {.additional = kOpt});
  ASSERT_TRUE(parse_query(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_query(whole.substr(0, size))) << size;
  }
}

TEST(WriteAnswer, SpellsAnAddressRecordByteForByte) {
  const auto query = parse_query(make_query("a.test", kTypeA));
  const std::string bytes =
      write_answer(*query, {.address = std::array<std::uint8_t, 4>{198, 18, 0, 2}, .ttl_seconds = 60});
  EXPECT_EQ(to_hex(bytes),
            "1234858000010001000000000161047465737400"
            "00010001"
            "c00c000100010000003c0004c6120002");
}

TEST(WriteAnswer, FitsTheSmallestUdpAnswerForTheLongestName) {
  std::string longest;
  for (int i = 0; i < 3; ++i) longest += "\x3f" + std::string(63, 'a');
  longest += "\x3d" + std::string(61, 'b') + "\0"s;
  const auto query = parse_query(raw_query(longest, kTypeA, {.additional = kOpt}));
  ASSERT_TRUE(query);
  Answer answer{.rcode = Rcode::NxDomain, .ttl_seconds = 30, .has_soa = true};
  answer.blocked_text = std::string(1000, 'x');
  EXPECT_LE(write_answer(*query, answer).size(), kMaxAnswerBytes);
}

TEST(WriteAnswer, SendsNoOptRecordToAClientWithoutEdns) {
  const auto query = parse_query(make_query("a.test", kTypeA));
  const std::string bytes = write_answer(*query, {.rcode = Rcode::NxDomain, .blocked_text = "why"});
  EXPECT_EQ(testing::read_answer(bytes).additionals, 0);
  EXPECT_EQ(bytes.find("why"), std::string::npos);
}

TEST(WriteError, PutsTheUpperBitsOfBadVersIntoAnOptRecord) {
  const std::string bytes = write_error({NoQuery::What::Answer, Rcode::BadVers, 0x1234, true, ""});
  EXPECT_EQ(to_hex(bytes),
            "123481800000000000000001"
            "00002904d0010000000000");
}

}  // namespace
}  // namespace sallyport::dns
