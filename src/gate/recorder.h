// The gate's way to the audit log: events go to the warden on the control socket, and come back numbered as
// written or not.
#pragma once

#include <cstdint>
#include <map>

#include "audit/recorder.h"
#include "net/event.h"
#include "net/packet_channel.h"
#include "net/worker.h"

namespace sallyport::gate {

class Recorder final : public audit::Recorder {
 public:
  // Events that wait for their answer at once; a warden that falls so far behind accepts nothing more, and
  // what would need its word is refused.
  static constexpr std::size_t kMaxPending = 1024;

  // Both are borrowed and outlive this.
  Recorder(net::Worker& worker, net::PacketChannel& channel);

  net::Task<Status> record(audit::Event event) override;
  // An event that cannot be sent is counted, and the count told by the next one that can.
  void note(audit::Event event) override;

  // The warden's answer. Numbers that nobody waits for (a note's) are no mistake.
  void written(std::uint64_t number, bool written);
  // The warden is gone: whoever waits is refused, and so is whoever comes.
  void end();

 private:
  struct Pending {
    explicit Pending(net::Worker& worker) : answered(worker) {}
    net::Event answered;
    bool written = false;
  };

  Status send(audit::Event event, std::uint64_t number);
  Status tell_lost();

  net::Worker& worker_;
  net::PacketChannel& channel_;
  std::uint64_t last_number_ = 0;
  std::uint64_t lost_ = 0;  // notes since the last event that could be sent
  bool ended_ = false;
  std::map<std::uint64_t, Pending*> pending_;  // each lives in its record()
};

}  // namespace sallyport::gate
