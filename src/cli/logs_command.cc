#include "cli/logs_command.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "base/text.h"
#include "cli/daemon_link.h"
#include "cli/report.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;
using control::text_of;

constexpr std::size_t kMaxTextBytes = 2000;  // of one line in words

std::int64_t number_of(const json::object& event, std::string_view key) {
  const json::value* value = event.if_contains(key);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

// "2026-01-31T10:20:30Z"
std::string time_of(const json::object& event) {
  constexpr std::size_t kSeconds = 19;
  return text_of(event, "time").substr(0, kSeconds) + "Z";
}

// The request as its client would write it, as far as it is known.
std::string target_of(const json::object& event) {
  const std::string host = text_of(event, "host");
  const std::string scheme = text_of(event, "scheme");
  if (host.empty()) return text_of(event, "destination");
  const std::int64_t port = number_of(event, "port");
  const bool usual = port == 0 || (scheme == "https" && port == 443) || (scheme == "http" && port == 80) ||
                     (scheme == "dns" && port == 53);
  std::string target = scheme.empty() ? host : scheme + "://" + host;
  if (!usual) target += fmt::format(":{}", port);
  const std::string path = text_of(event, "path");
  if (scheme == "dns") return fmt::format("{} {}", target, path);
  return target + path;
}

// " refs/heads/main"; the names of those that there is room for.
std::string refs_of(const json::object& event) {
  const json::value* refs = event.if_contains("refs");
  if (refs == nullptr || !refs->is_array()) return "";
  std::string text;
  for (const json::value& ref : refs->get_array()) {
    if (ref.is_object()) text += " " + text_of(ref.get_object(), "ref");
  }
  return text;
}

std::string outcome_of(const json::object& event) {
  return fmt::format("request {}, status {}, {} bytes in, {} out, {} ms", text_of(event, "request"),
                     number_of(event, "status"), number_of(event, "bytes_in"), number_of(event, "bytes_out"),
                     number_of(event, "duration_us") / 1000);
}

// What it is about.
std::string subject_of(const json::object& event, std::string_view kind) {
  if (kind == "end") return outcome_of(event);
  if (kind == "coalesced") {
    return fmt::format("{} more of {}", number_of(event, "count"), text_of(event, "of"));
  }
  std::string text = text_of(event, "method");
  if (const std::string target = target_of(event); !target.empty())
    text += (text.empty() ? "" : " ") + target;
  text += refs_of(event);
  if (const std::string rule = text_of(event, "rule"); !rule.empty()) text += fmt::format(", by {}", rule);
  if (const std::string name = text_of(event, "credential"); !name.empty()) text += ", credential " + name;
  return text;
}

// The decision, or what else happened.
std::string word_for(std::string_view kind) {
  if (kind == "begin") return "allowed";
  return kind == "end" ? "done" : std::string(kind);
}

bool print_line(const json::object& line, Format format) {
  const std::string text = text_of(line, "line");
  if (format == Format::Json) {
    fmt::print("{}\n", text);
    return true;
  }
  boost::system::error_code error;
  const json::value event = json::parse(text, error);
  if (error || !event.is_object()) return false;
  fmt::print("{}\n", event_text(event.get_object()));
  return true;
}

int follow_log(control::ApiStream& stream, Format format) {
  for (;;) {
    const auto step = stream.next();
    if (!step && step.error().reason == Reason::UpstreamTruncated) {
      return failed(
          {Reason::UpstreamTruncated, "the log was cut: it was read too slowly, or the daemon has ended"});
    }
    if (!step) return failed(step.error());
    if (step->kind == control::ApiStream::Step::Kind::End) return kExitOk;
    const json::object* line = step->line.if_object();
    if (auto error = line != nullptr ? control::error_in(*line) : std::nullopt) return failed(*error);
    if (line == nullptr || !print_line(*line, format)) {
      return failed({Reason::UpstreamMalformed, "a line of the log cannot be read"});
    }
    std::fflush(stdout);
  }
}

}  // namespace

std::string event_text(const json::object& event) {
  const std::string kind = text_of(event, "kind");
  std::string text = fmt::format("{} {:<13}", time_of(event), word_for(kind));
  if (const std::string subject = subject_of(event, kind); !subject.empty()) text += " " + subject;
  const std::string reason = text_of(event, "reason");
  if (!reason.empty() && reason != "none") text += ": " + reason;
  if (const std::string detail = text_of(event, "detail"); !detail.empty())
    text += fmt::format(" ({})", detail);
  return escaped(text, kMaxTextBytes);
}

int show_log(const LogsOptions& options) {
  auto daemon = link_to_daemon(options.daemon);
  if (!daemon) return failed(daemon.error());
  const auto path = session_path(
      options.session, fmt::format("/log?lines={}{}", options.lines, options.follow ? "&follow=1" : ""));
  if (!path) return failed(path.error());
  auto stream = daemon->stream({.method = "GET", .target = *path});
  if (!stream) return failed(stream.error());
  return follow_log(*stream, options.format);
}

}  // namespace sallyport::cli
