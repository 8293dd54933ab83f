#include "control/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sallyport::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string why_not(std::string_view text) {
  const auto value = parse_json(text);
  return value ? "" : value.error().detail;
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(ParseJson, ReadsWhatHasOneReading) {
  for (const std::string_view text : {R"({"a":1,"b":{"a":2}})", "[]", "1", "18446744073709551615",
                                      "-9223372036854775808", R"("x")", " null\n", R"(["ä\u00e4"])"}) {
    EXPECT_EQ(why_not(text), "") << text;
  }
  EXPECT_EQ(why_not(nested(kMaxJsonDepth)), "");
}

TEST(ParseJson, RefusesWhatHasNone) {
  using namespace std::string_view_literals;
  const struct {
    std::string_view text;
    const char* why;
  } cases[] = {
      {R"({"a":1,"a":2})", "the field \"a\" comes twice"},
      {R"({"a":1,"\u0061":2})", "the field \"a\" comes twice"},
      {R"([{"x":{"b":1,"c":2,"b":3}}])", "the field \"b\" comes twice"},
      {"{} {}", ""},
      {"{}x", ""},
      {"", ""},
      {" ", ""},
      {"{", ""},
      {"{\"a\":1,}", ""},
      {"[1 2]", ""},
      {"{a:1}", ""},
      {"// no\n1", ""},
      {"'a'", ""},
      {"NaN", ""},
      {"Infinity", ""},
      {"01", ""},
      {"+1", ""},
      {".5", ""},
      {"1.5", "not whole"},
      {"1e3", "not whole"},
      {"18446744073709551616", "out of range"},
      {"-9223372036854775809", "out of range"},
      {"1e999", "out of range"},
      {"-1e999", "out of range"},
      {"\"\xff\"", ""},
      {"\"\xc0\xaf\"", ""},
      {"\"\xed\xa0\x80\"", ""},
      {R"("\ud800")", ""},
      {R"("\u0000")", "a NUL"},
      {R"({"a\u0000b":1})", "a NUL"},
      {"\"a\0b\""sv, ""},
      {"\"a\nb\"", ""},
      {"\xef\xbb\xbf{}", ""},
      {"{}\0"sv, ""},
  };
  for (const auto& [text, why] : cases) {
    const std::string problem = why_not(text);
    EXPECT_THAT(problem, HasSubstr("the body cannot be read as JSON: ")) << text;
    EXPECT_THAT(problem, HasSubstr(why)) << text;
  }
}

TEST(ParseJson, RefusesDepth) {
  EXPECT_THAT(why_not(nested(kMaxJsonDepth + 1)), HasSubstr("more than 16 levels"));
  EXPECT_NE(why_not(std::string(100'000, '[')), "");
}

TEST(JsonReader, ReadsEachType) {
  const auto value = parse_json(
      R"({"name":"w","count":7,"tty":true,"limits":{"memory":"512MiB"},"command":["a","b"],"env":{"A":"1"}})");
  ASSERT_TRUE(value);
  JsonReader body("sessions", *value);
  EXPECT_EQ(body.text("name"), "w");
  EXPECT_EQ(body.integer("count", 0, 10), 7);
  EXPECT_EQ(body.flag("tty"), true);
  EXPECT_THAT(*body.texts("command"), ElementsAre("a", "b"));
  EXPECT_THAT(*body.text_map("env"), ElementsAre(Pair("A", "1")));
  std::optional<std::uint64_t> memory;
  body.object("limits", [&](JsonReader& limits) { memory = limits.size("memory"); });
  EXPECT_EQ(memory, 512U << 20U);
  EXPECT_EQ(body.text("absent"), std::nullopt);
  body.object("nothing", [](JsonReader&) { FAIL(); });
  EXPECT_TRUE(body.finish());
}

TEST(JsonReader, NamesTheFieldThatIsWrong) {
  const struct {
    const char* body;
    const char* problem;
  } cases[] = {
      {R"([])", "sessions: the body must be an object"},
      {R"({"name":1})", "sessions: name: must be a text of at most 8 bytes"},
      {R"({"name":"123456789"})", "sessions: name: must be a text of at most 8 bytes"},
      {R"({"name":null})", "sessions: name: must be a text of at most 8 bytes"},
      {R"({"count":0})", "sessions: count: must be a whole number from 1 to 5"},
      {R"({"count":6})", "sessions: count: must be a whole number from 1 to 5"},
      {R"({"count":18446744073709551615})", "sessions: count: must be a whole number from 1 to 5"},
      {R"({"count":"1"})", "sessions: count: must be a whole number from 1 to 5"},
      {R"({"tty":1})", "sessions: tty: must be true or false"},
      {R"({"limits":3})", "sessions: limits: must be an object"},
      {R"({"limits":{"memory":"512MB"}})", "sessions: limits.memory: must be a size like \"512MiB\""},
      {R"({"limits":{"memory":512}})", "sessions: limits.memory: must be a size like \"512MiB\""},
      {R"({"limits":{"disk":"1B"}})", "sessions: limits.disk: is no field of this call"},
      {R"({"command":"ls"})", "sessions: command: must be a list of at most 2 texts"},
      {R"({"command":["ls",1]})", "sessions: command: must be a list of at most 2 texts"},
      {R"({"command":["a","b","c"]})", "sessions: command: must be a list of at most 2 texts"},
      {R"({"env":{"A":1}})", "sessions: env: must be an object of at most 1 texts"},
      {R"({"env":{"A":"1","B":"2"}})", "sessions: env: must be an object of at most 1 texts"},
      {R"({"nmae":"x"})", "sessions: nmae: is no field of this call"},
      {R"({"mode":"odd"})", "sessions: mode: must be \"even\""},
      {R"({"tty":1,"count":0})", "sessions: count: must be a whole number from 1 to 5"},
  };
  for (const auto& [text, problem] : cases) {
    const auto value = parse_json(text);
    ASSERT_TRUE(value) << text;
    JsonReader body("sessions", *value);
    (void)body.text("name", 8);
    (void)body.integer("count", 1, 5);
    (void)body.flag("tty");
    body.object("limits", [](JsonReader& limits) { (void)limits.size("memory"); });
    (void)body.texts("command", 2);
    (void)body.text_map("env", 1);
    if (body.text("mode") == "odd") body.complain("mode", "must be \"even\"");
    const auto done = body.finish();
    ASSERT_FALSE(done) << text;
    EXPECT_EQ(done.error().detail, problem);
    EXPECT_EQ(done.error().reason, Reason::BadRequest);
  }
}

TEST(JsonReader, MissesWhatIsRequired) {
  const auto value = parse_json("{}");
  JsonReader body("sessions", *value);
  body.require("image");
  EXPECT_EQ(body.finish().error().detail, "sessions: image: is missing");
}

}  // namespace
}  // namespace sallyport::control
