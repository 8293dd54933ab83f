// Starting a program, exactly: its whole environment, its whole descriptor table, its ids and namespaces are
// named, and nothing else of the parent's is passed on. That a program could not be started is an Error of
// spawn() and never an exit code.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "os/process.h"

namespace sallyport::os {

struct DescriptorMap {
  int source_fd;  // stays the parent's
  int target_fd;  // the number in the child
};

enum class Grouping { Inherit, NewSession };

enum class PidNamespace {
  Parents,
  // The child is process 1 of a namespace of its own, with a /proc of its own to match: whatever it starts,
  // and whatever that starts, is killed by the kernel when the child ends, and is gone before its end shows.
  // Needs `user_namespace`, in which the child has the rights to make it.
  Own,
};

struct SpawnSpec {
  std::string program;                     // path; named in errors even when program_fd is used
  std::optional<int> program_fd;           // executes this file instead (O_PATH will do; no #! scripts)
  std::vector<std::string> argv;           // argv[0] included
  std::vector<std::string> environment;    // NAME=VALUE, the whole of it
  std::vector<DescriptorMap> descriptors;  // all others are closed; 0, 1 and 2 are /dev/null unless named
  // Before namespaces are entered: no uid 0 meets a foreign one. Under ActAs a child is wholly whom we act
  // as, unless another is named.
  std::optional<Ids> become;
  std::optional<std::uint64_t> max_memory;  // bytes of address space
  std::optional<int> user_namespace;
  std::optional<int> net_namespace;
  PidNamespace pid_namespace = PidNamespace::Parents;
  std::string working_directory;  // empty: the parent's
  // Sent when the *thread* that called spawn() ends.
  std::optional<int> parent_death_signal;
  Grouping grouping = Grouping::Inherit;
};

struct Child {
  pid_t pid = -1;
  Fd pidfd;  // readable when the child has ended
};

struct ExitStatus {
  std::optional<int> signal;  // what killed it
  int code = 0;               // exit code, when no signal did
  bool ok() const { return !signal && code == 0; }
  // As a shell would give it: 128 + signal when killed.
  int shell_code() const { return signal ? 128 + *signal : code; }
  // "signal 9", "exit code 1".
  std::string text() const;
};

// Of a child of ours that nobody has reaped, so its number is nobody else's. When it cannot be had, the child
// is killed and reaped.
Result<Child> known_child(pid_t pid);

// All signals are at their defaults and unblocked in the child.
Result<Child> spawn(const SpawnSpec& spec);

// Waits for the end and reaps.
Result<ExitStatus> wait_child(const Child& child);
// Reaps if it has ended; nullopt while it runs.
Result<std::optional<ExitStatus>> poll_child(const Child& child);
// Waits for at most `timeout`; nullopt when it still runs.
Result<std::optional<ExitStatus>> wait_child_within(const Child& child, std::chrono::milliseconds timeout);
// Sends a signal; one to a child that has ended already is no error.
Status kill_child(const Child& child, int signal);

}  // namespace sallyport::os
