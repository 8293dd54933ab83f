// Reads our own lines back: whose they are, and what a writer that was killed left unfinished in the log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sallyport::audit {

struct Unfinished {
  std::string session;
  std::uint64_t last_sequence = 0;
  std::vector<std::string> open_requests;  // with a begin and no end
};

// The sessions in `lines` (the end of a log, from the first whole line on) that have a start or an open
// request, and no end. Lines that are not ours are skipped. Who runs still is among them.
std::vector<Unfinished> unfinished_sessions(std::string_view lines);

// Of a line of ours, without its line feed: whose it is ("" for what is none), and whether it is a session's
// last.
std::string_view session_of(std::string_view line);
bool ends_session(std::string_view line);

}  // namespace sallyport::audit
