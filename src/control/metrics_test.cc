// A reader of the text format that knows nothing of our writer, and docs/metrics.md.
#include "control/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "base/reason.h"
#include "base/text.h"

namespace sallyport::control {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::StartsWith;

struct Family {
  std::string type;
  std::map<std::string, double> samples;  // by "_suffix{labels}"
};
using Families = std::map<std::string, Family>;

bool is_name(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

// Takes {name="value",...} from the front of a line.
std::string take_labels(std::string_view& line) {
  const std::string_view begin = line;
  if (!line.starts_with('{')) return "";
  std::set<std::string_view> names;
  do {
    line.remove_prefix(1);  // '{' or ','
    const std::string_view name = line.substr(0, line.find('='));
    EXPECT_TRUE(is_name(name)) << begin;
    EXPECT_TRUE(names.insert(name).second) << begin;
    line.remove_prefix(std::min(line.size(), name.size() + 1));
    EXPECT_TRUE(line.starts_with('"')) << begin;
    std::size_t end = 1;
    while (end < line.size() && line[end] != '"') {
      if (line[end] == '\\') {
        ++end;
        EXPECT_NE(std::string_view("\\\"n").find(line.substr(end, 1)), std::string_view::npos) << begin;
      }
      ++end;
    }
    line.remove_prefix(std::min(line.size(), end + 1));
  } while (line.starts_with(','));
  EXPECT_TRUE(line.starts_with('}')) << begin;
  line.remove_prefix(std::min<std::size_t>(line.size(), 1));
  return std::string(begin.substr(0, begin.size() - line.size()));
}

void read_sample(Families& families, const std::string& current, std::string_view line) {
  ASSERT_THAT(std::string(line), StartsWith(current)) << "a sample outside of its family";
  Family& family = families[current];
  line.remove_prefix(current.size());
  const std::string suffix(line.substr(0, line.find_first_of("{ ")));
  if (family.type == "histogram") {
    EXPECT_THAT(suffix, AnyOf("_bucket", "_sum", "_count"));
  } else {
    EXPECT_EQ(suffix, "");
  }
  line.remove_prefix(suffix.size());
  const std::string labels = take_labels(line);
  ASSERT_TRUE(line.starts_with(' ')) << line;
  std::size_t used = 0;
  const double value = std::stod(std::string(line.substr(1)), &used);
  EXPECT_EQ(used, line.size() - 1);
  EXPECT_GE(value, 0);
  EXPECT_TRUE(family.samples.emplace(suffix + labels, value).second) << "twice: " << current << labels;
}

// HELP, TYPE, then its samples; each family once.
Families read(const std::string& text) {
  Families families;
  std::string current;
  std::string helped;
  EXPECT_TRUE(text.ends_with('\n'));
  for (const std::string_view line : split(std::string_view(text).substr(0, text.size() - 1), '\n')) {
    const auto words = split(line, ' ');
    if (line.starts_with("# HELP ")) {
      helped = words.at(2);
      EXPECT_TRUE(is_name(helped)) << line;
      EXPECT_GT(words.size(), 3U) << line;
    } else if (line.starts_with("# TYPE ")) {
      current = words.at(2);
      EXPECT_EQ(current, helped);
      EXPECT_THAT(std::string(words.at(3)), AnyOf("counter", "gauge", "histogram"));
      EXPECT_EQ(words.size(), 4U);
      EXPECT_FALSE(families.contains(current)) << line;
      families[current].type = words.at(3);
      EXPECT_EQ(words.at(3) == "counter", current.ends_with("_total")) << line;
    } else {
      read_sample(families, current, line);
    }
  }
  return families;
}

audit::Event event(audit::Kind kind, Reason reason = Reason::None) {
  audit::Event result;
  result.kind = kind;
  result.reason = reason;
  return result;
}

Families some_metrics() {
  audit::Meter meter;
  meter.add(event(audit::Kind::Begin));
  meter.add(event(audit::Kind::Refused, Reason::HostNotAllowed));
  audit::Event end = event(audit::Kind::End, Reason::UpstreamTimeout);
  end.bytes_in = 3;
  end.bytes_out = 5;
  end.duration = std::chrono::milliseconds(1'500);
  meter.add(end);
  meter.add(event(audit::Kind::End, Reason::Overloaded));
  meter.add(event(audit::Kind::Credential));
  meter.add(event(audit::Kind::Alarm, Reason::ProcessDied));
  return read(metrics_text({.processes = {{.name = "sallyport-gate", .running = true, .deaths = 2}},
                            .sessions = {{"ended", 0}, {"running", 3}},
                            .containers = 1},
                           meter));
}

TEST(Metrics, AreWhatHappened) {
  Families families = some_metrics();
  const auto value = [&](const std::string& family, const std::string& sample) {
    EXPECT_THAT(families, Contains(testing::Key(family)));
    const auto& samples = families[family].samples;
    const auto found = samples.find(sample);
    return found == samples.end() ? -1 : found->second;
  };
  EXPECT_EQ(value("sallyport_process_up", "{process=\"sallyport-gate\"}"), 1);
  EXPECT_EQ(value("sallyport_process_deaths_total", "{process=\"sallyport-gate\"}"), 2);
  EXPECT_EQ(value("sallyport_sessions", "{state=\"running\"}"), 3);
  EXPECT_EQ(value("sallyport_container_sessions", ""), 1);
  EXPECT_EQ(value("sallyport_decisions_total", "{decision=\"allowed\",reason=\"none\"}"), 1);
  EXPECT_EQ(value("sallyport_decisions_total", "{decision=\"refused\",reason=\"host_not_allowed\"}"), 1);
  EXPECT_EQ(value("sallyport_requests_ended_total", "{reason=\"none\"}"), 0);
  EXPECT_EQ(value("sallyport_requests_ended_total", "{reason=\"upstream_timeout\"}"), 1);
  EXPECT_EQ(value("sallyport_errors_total", "{origin=\"upstream\"}"), 1);
  EXPECT_EQ(value("sallyport_errors_total", "{origin=\"gateway\"}"), 1);
  EXPECT_EQ(value("sallyport_limits_hit_total", "{reason=\"overloaded\"}"), 1);
  EXPECT_EQ(value("sallyport_credential_uses_total", "{reason=\"none\"}"), 1);
  EXPECT_EQ(value("sallyport_alarms_total", "{reason=\"process_died\"}"), 1);
  EXPECT_EQ(value("sallyport_body_bytes_total", "{direction=\"down\"}"), 5);
}

TEST(Metrics, TheHistogramIsOne) {
  const auto samples = some_metrics()["sallyport_request_duration_seconds"].samples;
  EXPECT_EQ(samples.at("_count"), 2);
  EXPECT_EQ(samples.at("_sum"), 1.5);
  EXPECT_EQ(samples.at("_bucket{le=\"+Inf\"}"), 2);
  std::map<double, double> buckets;  // in the order of their bounds
  for (const auto& [name, value] : samples) {
    if (name.starts_with("_bucket{le=\"") && !name.contains("Inf"))
      buckets[std::stod(name.substr(12))] = value;
  }
  EXPECT_EQ(buckets.size(), audit::Meter::kBounds.size());
  double before = 0;
  for (const auto& [bound, value] : buckets) {
    EXPECT_GE(value, before) << bound;
    EXPECT_EQ(value, bound < 1.5 ? 1 : 2) << bound;
    before = value;
  }
}

TEST(Metrics, AreTheOnesOfTheirPage) {
  std::ifstream file(SALLYPORT_SOURCE_DIR "/docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::map<std::string, std::string> documented;  // name to type
  for (const std::string_view line : split(page, '\n')) {
    if (!line.starts_with("| `sallyport_")) continue;
    const auto cells = split(line, '|');
    const std::string_view name = cells.at(1);
    documented.emplace(name.substr(2, name.size() - 4), cells.at(2).substr(1, cells.at(2).size() - 2));
  }
  std::map<std::string, std::string> written;
  for (const auto& [name, family] : some_metrics()) written.emplace(name, family.type);
  EXPECT_EQ(written, documented);
}

}  // namespace
}  // namespace sallyport::control
