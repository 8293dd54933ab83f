#include "control/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/reason.h"
#include "control/exposition.h"

namespace sallyport::control {
namespace {

using Type = Exposition::Type;
using ByReason = audit::Meter::ByReason;

// Limits that a request or a connection ran into.
constexpr std::array kLimitReasons{Reason::HeadTooLarge, Reason::TargetTooLong, Reason::TooMany,
                                   Reason::TooLarge,     Reason::UsesSpent,     Reason::Overloaded};

// Each reason that there is, with its count.
template <typename Visit>
void for_each(const ByReason& counts, Visit visit) {
  for (std::size_t number = 0; number < counts.size(); ++number) {
    const auto reason = reason_from_number(static_cast<std::uint8_t>(number));
    if (reason) visit(*reason, counts[number]);
  }
}

// Those that have happened: what has not is 0 by its absence, but for None.
void by_reason(Exposition& out, const ByReason& counts) {
  for_each(counts, [&](Reason reason, std::uint64_t count) {
    if (count > 0 || reason == Reason::None) out.sample(count, {{"reason", code(reason)}});
  });
}

std::uint64_t of(const ByReason& counts, Origin origin) {
  std::uint64_t sum = 0;
  for_each(counts, [&](Reason reason, std::uint64_t count) {
    if (reason != Reason::None && info(reason).origin == origin) sum += count;
  });
  return sum;
}

void add_state(Exposition& out, const DaemonState& daemon) {
  out.family("sallyport_process_up", Type::Gauge, "Whether the process runs.");
  for (const auto& process : daemon.processes)
    out.sample(process.running ? 1 : 0, {{"process", process.name}});
  out.family("sallyport_process_deaths_total", Type::Counter, "How often it died, and was started again.");
  for (const auto& process : daemon.processes) out.sample(process.deaths, {{"process", process.name}});
  out.family("sallyport_sessions", Type::Gauge, "Sessions, by what becomes of them.");
  for (const auto& [state, count] : daemon.sessions) out.sample(count, {{"state", state}});
  out.family("sallyport_container_sessions", Type::Gauge, "Sessions that are containers of an engine.");
  out.sample(daemon.containers);
}

void add_decisions(Exposition& out, const audit::Meter& meter) {
  out.family("sallyport_decisions_total", Type::Counter,
             "What policy said to requests, lookups and packets.");
  out.sample(meter.allowed(), {{"decision", "allowed"}, {"reason", code(Reason::None)}});
  for_each(meter.refused(), [&](Reason reason, std::uint64_t count) {
    if (count > 0) out.sample(count, {{"decision", "refused"}, {"reason", code(reason)}});
  });
  out.family("sallyport_requests_ended_total", Type::Counter, "How allowed requests and tunnels ended.");
  by_reason(out, meter.ended());
  out.family("sallyport_credential_uses_total", Type::Counter,
             "Requests that wanted a credential of the vault.");
  by_reason(out, meter.credentials());
  out.family("sallyport_errors_total", Type::Counter, "Allowed requests that failed, by who is at fault.");
  out.sample(of(meter.ended(), Origin::Client), {{"origin", "client"}});
  out.sample(of(meter.ended(), Origin::Upstream), {{"origin", "upstream"}});
  out.sample(of(meter.ended(), Origin::Gateway), {{"origin", "gateway"}});
  out.family("sallyport_limits_hit_total", Type::Counter, "Refused or failed at a limit.");
  for (const Reason reason : kLimitReasons) {
    const auto index = static_cast<std::size_t>(reason);
    out.sample(meter.refused().at(index) + meter.ended().at(index), {{"reason", code(reason)}});
  }
  out.family("sallyport_alarms_total", Type::Counter, "What should not happen, and did.");
  by_reason(out, meter.alarms());
  out.family("sallyport_audit_lost_total", Type::Counter, "Events that the audit log did not take.");
  out.sample(meter.lost());
}

void add_traffic(Exposition& out, const audit::Meter& meter) {
  out.family("sallyport_body_bytes_total", Type::Counter, "Bytes of bodies and tunnels of what has ended.");
  out.sample(meter.bytes_in(), {{"direction", "up"}});
  out.sample(meter.bytes_out(), {{"direction", "down"}});
  out.family("sallyport_request_duration_seconds", Type::Histogram,
             "From a request's decision to its end, tunnels included.");
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < audit::Meter::kBounds.size(); ++i) {
    so_far += meter.durations().at(i);
    const std::chrono::duration<double> bound = audit::Meter::kBounds.at(i);
    out.sample("_bucket", std::to_string(so_far), {{"le", fmt::format("{}", bound.count())}});
  }
  std::uint64_t all = 0;
  for_each(meter.ended(), [&](Reason, std::uint64_t count) { all += count; });
  out.sample("_bucket", std::to_string(all), {{"le", "+Inf"}});
  out.sample("_sum", fmt::format("{}", std::chrono::duration<double>(meter.duration()).count()));
  out.sample("_count", std::to_string(all));
}

}  // namespace

std::string metrics_text(const DaemonState& daemon, const audit::Meter& meter) {
  Exposition out;
  add_state(out, daemon);
  add_decisions(out, meter);
  add_traffic(out, meter);
  return out.take();
}

}  // namespace sallyport::control
