#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "sandbox/git_config.h"
#include "sandbox/git_secret.h"

// A workspace's configuration, and what is said of it: no name is empty, and no line number is beyond the
// text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t lines = split(text, '\n').size();
  for (const std::string_view line : split(text, '\n')) {
    (void)sandbox::secret_in_line(line);
    (void)sandbox::secret_in_log_line(line);
  }
  const auto entries = sandbox::parse_git_config(text);
  if (!entries) return 0;
  for (const sandbox::GitConfigEntry& entry : *entries) {
    if (entry.name.empty() || entry.line == 0 || entry.line > lines) std::abort();
    (void)sandbox::secret_in(entry);
    (void)sandbox::secret_file_of(entry);
    (void)sandbox::included_file_of(entry);
  }
  return 0;
}
