#include "audit/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace sallyport::audit {
namespace {

// One JSON object being written. Keys are ours and need no escaping.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }

  Object& text(std::string_view key, std::string_view value) {
    put_key(key);
    append_json_text(out_, value);
    return *this;
  }
  Object& number(std::string_view key, std::uint64_t value) {
    put_key(key);
    out_ += std::to_string(value);
    return *this;
  }
  Object& refs(std::string_view key, const std::vector<RefChange>& changes) {
    put_key(key);
    out_ += '[';
    for (std::size_t i = 0; i < changes.size(); ++i) {
      if (i > 0) out_ += ',';
      Object(out_)
          .text("ref", changes[i].ref)
          .text("old", changes[i].old_id)
          .text("new", changes[i].new_id)
          .close();
    }
    out_ += ']';
    return *this;
  }
  void close() { out_ += '}'; }

 private:
  void put_key(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    append_json_text(out_, key);
    out_ += ':';
  }

  std::string& out_;
  bool first_ = true;
};

// What was asked for.
void put_request(Object& line, const Event& event) {
  line.text("request", event.request)
      .text("entry", name(event.entry))
      .text("destination", event.destination)
      .text("scheme", event.scheme)
      .text("host", event.host)
      .number("port", event.port)
      .text("method", event.method)
      .text("path", event.path);
}

void put_refs(Object& line, const Event& event) {
  line.refs("refs", event.refs).number("refs_total", event.refs_total);
}

void put_outcome(Object& line, const Event& event) {
  line.text("reason", code(event.reason)).text("detail", event.detail);
}

void put_fields(Object& line, const Event& event) {
  switch (event.kind) {
    case Kind::SessionStart:
    case Kind::SessionEnd:
    case Kind::Reload:
      put_outcome(line, event);
      return;
    case Kind::Begin:
      put_request(line, event);
      line.text("rule", event.rule).text("credential", event.credential);
      put_refs(line, event);
      return;
    case Kind::End:
      line.text("request", event.request);
      put_outcome(line, event);
      line.number("status", event.status > 0 ? static_cast<std::uint64_t>(event.status) : 0)
          .number("bytes_in", event.bytes_in)
          .number("bytes_out", event.bytes_out)
          .number("duration_us",
                  static_cast<std::uint64_t>(std::max<std::int64_t>(event.duration.count(), 0)));
      return;
    case Kind::Refused:
      put_request(line, event);
      line.text("rule", event.rule);
      put_outcome(line, event);
      put_refs(line, event);
      return;
    case Kind::Refs:
      line.text("request", event.request);
      put_refs(line, event);
      return;
    case Kind::Credential:
    case Kind::Alarm:
      put_request(line, event);
      line.text("rule", event.rule).text("credential", event.credential);
      put_outcome(line, event);
      return;
    case Kind::Coalesced:
      line.text("of", name(event.of))
          .text("entry", name(event.entry))
          .text("reason", code(event.reason))
          .number("count", event.count);
      return;
  }
}

}  // namespace

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto microseconds = std::chrono::floor<std::chrono::microseconds>(time);
  const auto midnight = std::chrono::floor<std::chrono::days>(microseconds);
  const std::chrono::year_month_day day(midnight);
  const std::chrono::hh_mm_ss clock(microseconds - midnight);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::SessionStart:
      return "session_start";
    case Kind::SessionEnd:
      return "session_end";
    case Kind::Begin:
      return "begin";
    case Kind::End:
      return "end";
    case Kind::Refused:
      return "refused";
    case Kind::Refs:
      return "refs";
    case Kind::Credential:
      return "credential";
    case Kind::Alarm:
      return "alarm";
    case Kind::Reload:
      return "reload";
    case Kind::Coalesced:
      return "coalesced";
  }
  return "";
}

std::string_view name(Entry entry) {
  switch (entry) {
    case Entry::None:
      return "";
    case Entry::Tls:
      return "tls";
    case Entry::Http:
      return "http";
    case Entry::Tcp:
      return "tcp";
    case Entry::Dns:
      return "dns";
    case Entry::Udp:
      return "udp";
    case Entry::Icmp:
      return "icmp";
    case Entry::Proxy:
      return "proxy";
  }
  return "";
}

std::string json_line(const Stamp& stamp, Event event) {
  sanitize(event);
  std::string out;
  Object line(out);
  line.text("time", time_text(stamp.time))
      .number("seq", stamp.sequence)
      .text("session", stamp.session)
      .text("kind", name(event.kind));
  put_fields(line, event);
  // Behind what recover.h reads: an image's name is in it.
  line.text("container", stamp.container);
  line.close();
  out += '\n';
  return out;
}

}  // namespace sallyport::audit
