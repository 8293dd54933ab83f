// What a writer that was killed left unfinished in the log: reads our own lines back.
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

}  // namespace sallyport::audit
