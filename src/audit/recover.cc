#include "audit/recover.h"

#include <map>
#include <optional>
#include <set>

#include "base/text.h"

namespace sallyport::audit {
namespace {

struct Line {
  std::uint64_t sequence = 0;
  std::string_view session;
  std::string_view kind;
  std::string_view request;  // of a begin or end
};

// Takes `before`, and what follows up to `end`, off the front of `rest`.
std::optional<std::string_view> take(std::string_view& rest, std::string_view before, char end) {
  if (!rest.starts_with(before)) return std::nullopt;
  rest.remove_prefix(before.size());
  const std::size_t length = rest.find(end);
  if (length == std::string_view::npos) return std::nullopt;
  const std::string_view value = rest.substr(0, length);
  rest.remove_prefix(length + 1);
  return value;
}

// The fields that json.cc puts first. Nothing that others chose stands before them.
std::optional<Line> parse_line(std::string_view rest) {
  // A torn line tells nothing: who wrote it died before it was said to be written.
  if (!rest.ends_with('}') || !take(rest, R"({"time":")", '"')) return std::nullopt;
  const auto sequence = take(rest, R"(,"seq":)", ',');
  const auto number = sequence ? parse_decimal(*sequence, UINT64_MAX) : std::nullopt;
  const auto session = take(rest, R"("session":")", '"');
  const auto kind = take(rest, R"(,"kind":")", '"');
  if (!number || !session || !kind) return std::nullopt;
  Line line{.sequence = *number, .session = *session, .kind = *kind, .request = {}};
  if (line.kind != "begin" && line.kind != "end") return line;
  const auto request = take(rest, R"(,"request":")", '"');
  // Ours are hexadecimal. One that needed escaping came from a gate that was taken over.
  if (!request || request->contains('\\')) return std::nullopt;
  line.request = *request;
  return line;
}

struct Seen {
  bool started = false;
  bool ended = false;
  std::uint64_t last_sequence = 0;
  // A set: a gate that was taken over may begin one request many times, and has it ended once.
  std::set<std::string_view> open;
};

void follow(Seen& seen, const Line& line) {
  seen.last_sequence = line.sequence;
  if (line.kind == "session_start") seen.started = true;
  if (line.kind == "session_end") seen.ended = true;
  if (line.kind == "begin") seen.open.insert(line.request);
  if (line.kind == "end") seen.open.erase(line.request);
}

}  // namespace

std::vector<Unfinished> unfinished_sessions(std::string_view lines) {
  std::map<std::string_view, Seen> sessions;
  for (const std::string_view text : split(lines, '\n')) {
    if (const auto line = parse_line(text)) follow(sessions[line->session], *line);
  }
  std::vector<Unfinished> result;
  for (const auto& [session, seen] : sessions) {
    if (seen.ended || (!seen.started && seen.open.empty())) continue;
    result.push_back({std::string(session), seen.last_sequence, {seen.open.begin(), seen.open.end()}});
  }
  return result;
}

std::string_view session_of(std::string_view line) {
  const auto parsed = parse_line(line);
  return parsed ? parsed->session : std::string_view();
}

bool ends_session(std::string_view line) {
  const auto parsed = parse_line(line);
  return parsed && parsed->kind == "session_end";
}

}  // namespace sallyport::audit
