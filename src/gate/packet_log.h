// Packets that the sandbox's rules refused, as lines of the audit log. A sandbox can send a million of them:
// the rules report some a second (os/firewall), and the warden coalesces what is left (audit/coalesce).
#pragma once

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/fd.h"
#include "net/task.h"
#include "net/worker.h"
#include "os/nflog.h"

namespace sallyport::gate {

audit::Event refusal_of(const os::RefusedPacket& packet);

// Reads the NFLOG socket until it fails.
net::Task<> watch_packet_log(net::Worker& worker, Fd socket, audit::Recorder& recorder);

}  // namespace sallyport::gate
