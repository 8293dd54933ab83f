// Whether a daemon can do its work, and if not, why and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sallyport::control {

struct NotReady {
  std::string message;
  std::string hint;
};

// With less room than this on its disk the audit log is as good as full: it is what some hundred lines need.
inline constexpr std::uint64_t kMinFreeAuditBytes = std::uint64_t{64} * 1024;

// Without the log nothing is let through. It need not be there yet; its folder must.
std::optional<NotReady> why_no_audit(const std::string& path);
// The same, with so many bytes free on its disk.
std::optional<NotReady> why_no_room(const std::string& path, std::uint64_t free_bytes);

}  // namespace sallyport::control
