// Packets that the sandbox's rules refused, as lines of the audit log. A sandbox can send a million of them:
// a few lines a second are written, and the rest is counted.
#pragma once

#include <cstdint>
#include <vector>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/fd.h"
#include "base/rate.h"
#include "net/task.h"
#include "net/worker.h"
#include "os/nflog.h"

namespace sallyport::gate {

inline constexpr double kMaxPacketLinesPerSecond = 20;

class PacketLines {
 public:
  // The lines to write for these packets. The first of them tells how many got none since the last line.
  std::vector<audit::Event> lines_for(const std::vector<os::RefusedPacket>& packets,
                                      std::chrono::steady_clock::time_point now);
  // Packets that got no line and were not told of yet.
  std::uint64_t untold() const { return untold_; }

 private:
  TokenBucket rate_{kMaxPacketLinesPerSecond, kMaxPacketLinesPerSecond};
  std::uint64_t untold_ = 0;
};

// Reads the NFLOG socket until it fails.
net::Task<> watch_packet_log(net::Worker& worker, Fd socket, audit::Recorder& recorder);

}  // namespace sallyport::gate
