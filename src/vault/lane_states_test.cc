// The two tables of states in docs/lane-protocol.md, driven: each frame in each state has the outcome that
// stands there. A state is known by what may follow it.

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "vault/lane.h"

namespace sallyport::vault {
namespace {

using upstream::BodyKind;

constexpr std::array kFrames{
    FrameHeader{FrameType::RequestHead, 100}, FrameHeader{FrameType::Body, 4},
    FrameHeader{FrameType::BodyEnd, 0},       FrameHeader{FrameType::AnswerHead, 100},
    FrameHeader{FrameType::AnswerBody, 4},    FrameHeader{FrameType::AnswerEnd, 0},
    FrameHeader{FrameType::Error, 10},
};

bool take(RequestOrder& order, FrameHeader frame) {
  const bool taken = order.accept(frame).has_value();
  if (taken && frame.type == FrameType::RequestHead) order.begin(BodyKind::Open, 0);
  return taken;
}
bool take(AnswerOrder& order, FrameHeader frame) {
  const bool taken = order.accept(frame).has_value();
  if (taken && frame.type == FrameType::AnswerHead) order.begin({});
  return taken;
}
bool is_over(const RequestOrder& order) {
  return order.idle();
}
bool is_over(const AnswerOrder& order) {
  return order.ended();
}

// What may follow, and what may follow that.
template <class Order>
std::string future(const Order& order, int depth = 3) {
  std::string out = is_over(order) ? "!" : ".";
  for (const FrameHeader frame : kFrames) {
    Order next = order;
    const bool taken = take(next, frame);
    out += taken ? "+" : "-";
    if (taken && depth > 0) out += "(" + future(next, depth - 1) + ")";
  }
  return out;
}

RequestOrder with_body(BodyKind kind, std::uint64_t bytes = 0) {
  RequestOrder order;
  EXPECT_TRUE(order.accept(kFrames[0]));
  order.begin(kind, bytes);
  return order;
}
RequestOrder awaiting() {
  RequestOrder order = with_body(BodyKind::None);
  EXPECT_TRUE(order.accept({FrameType::BodyEnd, 0}));
  return order;
}
RequestOrder answered(RequestOrder order) {
  order.answer_ended();
  return order;
}

AnswerOrder behind_head(std::optional<std::uint64_t> bytes) {
  AnswerOrder order;
  EXPECT_TRUE(order.accept({FrameType::AnswerHead, 100}));
  order.begin(bytes);
  return order;
}
AnswerOrder behind(FrameHeader last) {
  AnswerOrder order = behind_head({});
  EXPECT_TRUE(order.accept(last));
  return order;
}

const std::map<std::string, RequestOrder> kVaultStates{
    {"idle", {}},
    {"no body", with_body(BodyKind::None)},
    {"open body", with_body(BodyKind::Open)},
    {"8 bytes left", with_body(BodyKind::Declared, 8)},
    {"4 bytes left", with_body(BodyKind::Declared, 4)},
    {"3 bytes left", with_body(BodyKind::Declared, 3)},
    {"awaiting", awaiting()},
    {"no body, answered", answered(with_body(BodyKind::None))},
    {"open body, answered", answered(with_body(BodyKind::Open))},
    {"awaiting, answered", answered(awaiting())},
};
const std::map<std::string, AnswerOrder> kGateStates{
    {"head", {}},
    {"open body", behind_head({})},
    {"8 bytes left", behind_head(8)},
    {"4 bytes left", behind_head(4)},
    {"3 bytes left", behind_head(3)},
    {"0 bytes left", behind_head(0)},
    {"ended", behind({FrameType::AnswerEnd, 0})},
    {"failed", behind({FrameType::Error, 10})},
};

// The table whose first line begins so: its rows, each a list of cells without their back quotes.
std::vector<std::vector<std::string>> table(const std::string& first) {
  std::ifstream file(std::string(SALLYPORT_SOURCE_DIR) + "/docs/lane-protocol.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = inside ? line.starts_with("|") : line.starts_with(first);
    if (!inside || line.starts_with("|---")) continue;
    std::vector<std::string> cells;
    for (const std::string_view cell : split(std::string_view(line).substr(1, line.size() - 2), '|')) {
      std::string text(trimmed(cell));
      std::erase(text, '`');
      cells.push_back(std::move(text));
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

template <class Order>
void drive(const std::string& first, const std::map<std::string, Order>& states,
           const std::map<FrameType, std::size_t>& columns) {
  const auto rows = table(first);
  ASSERT_EQ(rows.size(), states.size() + 1) << "one row for each state";
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), rows[0].size());
    const Order& state = states.at(rows[i][0]);
    for (const FrameHeader frame : kFrames) {
      const auto named = columns.find(frame.type);
      const std::string& wanted = rows[i][named == columns.end() ? rows[0].size() - 1 : named->second];
      Order next = state;
      const bool taken = take(next, frame);
      const auto where = rows[i][0] + ", frame " + std::to_string(static_cast<int>(frame.type));
      EXPECT_EQ(taken, wanted != "refused") << where;
      if (taken && wanted != "refused") EXPECT_EQ(future(next), future(states.at(wanted))) << where;
    }
  }
}

TEST(LaneStates, TheVaultHasTheDocumentedOutcomeForEachFrameInEachState) {
  drive("| state | request head", kVaultStates,
        {{FrameType::RequestHead, 1}, {FrameType::Body, 2}, {FrameType::BodyEnd, 3}});
}

TEST(LaneStates, TheGateHasTheDocumentedOutcomeForEachFrameInEachState) {
  drive("| state | answer head", kGateStates,
        {{FrameType::AnswerHead, 1},
         {FrameType::AnswerBody, 2},
         {FrameType::AnswerEnd, 3},
         {FrameType::Error, 4}});
}

}  // namespace
}  // namespace sallyport::vault
