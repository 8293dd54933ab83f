// What a process needs to know and settle about itself.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sallyport::os {

// The descriptor on which a program of ours finds the control socket of the warden that started it.
inline constexpr int kControlFd = 3;

// Whom to become, or to act as: with these supplementary groups and no others.
struct Ids {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
};

// The ids that a command line "PROGRAM [--uid N --gid N]" names; nullopt when it names none.
Result<std::optional<Ids>> parse_ids(int argc, const char* const* argv);

// Takes on the groups, then the ids for real, effective and saved at once, and proves that the way back is
// closed. Needs CAP_SETUID and CAP_SETGID.
Status become(const Ids& ids);

// Has the kernel send `signal` when the thread that started this process ends. Any change of ids or
// capabilities undoes it: call it last. Fails when that parent is already gone (`expected_parent`).
Status set_parent_death_signal(int signal, pid_t expected_parent);

// As much as is allowed, at most `most`, and for good. Root may also allow itself more.
Status limit_resource(decltype(RLIMIT_NOFILE) resource, rlim_t most);

// The folder of the running executable.
Result<std::string> own_folder();
// A program of ours: beside the running executable, or in ../libexec/sallyport. Absolute path.
Result<std::string> find_own_program(std::string_view name);

}  // namespace sallyport::os
