#include "config/limits.h"

#include <fmt/format.h>

#include "config/table_reader.h"
#include "config/units.h"

namespace sallyport::config {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kUnlimited = "unlimited";

// One table that is being read.
struct Reader {
  TableReader& table;
  Problems& problems;

  void refuse(const Value& value, std::string_view key, std::string_view remedy) const {
    problems.push_back(
        {value.place, fmt::format("{} cannot be {}", key, shown(value.text)), std::string(remedy)});
  }
};

void read_count(const Reader& reader, std::string_view key, std::uint32_t& into) {
  const Value* value = reader.table.find(key, Kind::Integer);
  if (value == nullptr) return;
  if (value->integer >= 1 && value->integer <= policy::kMaxAtOnce) {
    into = static_cast<std::uint32_t>(value->integer);
    return;
  }
  reader.problems.push_back({value->place, fmt::format("{} cannot be {}", key, value->integer),
                             fmt::format("write a number from 1 to {}", policy::kMaxAtOnce)});
}

void read_rate(const Reader& reader, std::string_view key, Amount amount, std::optional<Rate>& into) {
  const Value* value = reader.table.find(key, Kind::String);
  if (value == nullptr) return;
  const auto rate = parse_rate(value->text, amount);
  if (rate || value->text == kUnlimited) {
    into = rate;
  } else if (amount == Amount::Number) {
    reader.refuse(*value, key, R"(write it as in "100/s burst 200", with s, min, h or day, or "unlimited")");
  } else {
    reader.refuse(
        *value, key,
        R"(write it as in "500MiB/h", with B, KiB, MiB or GiB in each s, min, h or day, or "unlimited")");
  }
}

// The kernel counts these, in seconds.
void read_new_connections(const Reader& reader, std::optional<Rate>& into) {
  constexpr std::string_view kKey = "new_connections";
  const Value* value = reader.table.find(kKey, Kind::String);
  if (value == nullptr) return;
  const auto rate = parse_rate(value->text, Amount::Number);
  const bool fits = rate && rate->per == std::chrono::seconds(1) &&
                    rate->amount <= policy::kMaxNewConnections && rate->burst <= policy::kMaxNewConnections;
  if (fits || value->text == kUnlimited) {
    into = rate;
  } else {
    reader.refuse(*value, kKey,
                  R"(write it as in "250/s burst 4000", at most 1000000 of each, or "unlimited")");
  }
}

void read_time(const Reader& reader, std::string_view key, std::chrono::milliseconds max,
               std::chrono::milliseconds& into) {
  const Value* value = reader.table.find(key, Kind::String);
  if (value == nullptr) return;
  if (const auto time = parse_time(value->text, max)) {
    into = *time;
    return;
  }
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(max).count();
  reader.refuse(
      *value, key,
      fmt::format(R"(write a whole number and its unit, from "1ms" to "{}min", like "600s")", minutes));
}

void read_size(const Reader& reader, std::string_view key, std::uint64_t& into) {
  const Value* value = reader.table.find(key, Kind::String);
  if (value == nullptr) return;
  if (const auto size = parse_size(value->text); size && *size > 0) {
    into = *size;
    return;
  }
  reader.refuse(*value, key, R"(write a whole number with B, KiB, MiB or GiB, like "10GiB", or "unlimited")");
}

}  // namespace

void read_limits(const Value& table, policy::Limits& into, Problems& problems) {
  TableReader keys(table, "[limits]", problems);
  const Reader reader{keys, problems};
  read_count(reader, "connections", into.connections);
  read_count(reader, "requests_per_host", into.requests_per_host);
  read_count(reader, "tunnels_per_host", into.tunnels_per_host);
  read_count(reader, "pending_connects", into.pending_connects);
  read_new_connections(reader, into.new_connections);
  read_rate(reader, "requests", Amount::Number, into.requests);
  read_rate(reader, "dns", Amount::Number, into.dns);
  read_rate(reader, "upload", Amount::Size, into.upload);
  read_rate(reader, "download", Amount::Size, into.download);
  read_time(reader, "tunnel_idle", policy::kMaxTunnelIdle, into.tunnel_idle);
  read_time(reader, "tunnel_life", policy::kMaxTunnelLife, into.tunnel_life);
  read_size(reader, "tunnel_upload", into.tunnel_upload);
  read_size(reader, "tunnel_download", into.tunnel_download);
  keys.finish();
}

}  // namespace sallyport::config
