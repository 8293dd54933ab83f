#include "sandbox/transport_refusal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace sallyport::sandbox {
namespace {

constexpr std::size_t kMaxShownBytes = 200;
constexpr std::size_t kMaxHostBytes = 253;  // RFC 1035, 2.3.4

// What one wanted to reach, as far as it can be put into a policy; empty where it cannot.
struct Wanted {
  std::string host;
  std::string path;  // "owner/name"
  std::string_view access = "fetch";
};

bool is_host(std::string_view text) {
  return text.size() <= kMaxHostBytes && text.contains('.') && !text.starts_with('.') &&
         std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '.' || c == '-'; });
}

bool is_path(std::string_view text) {
  const auto allowed = [](char c) { return is_alnum(c) || std::string_view("._-/").contains(c); };
  return text.size() <= kMaxShownBytes && text.contains('/') && std::ranges::all_of(text, allowed) &&
         !text.contains("//") && !text.contains("..");
}

// git-upload-pack '/owner/name.git', as git quotes it for the other side's shell.
void read_command(std::string_view command, Wanted& wanted) {
  if (command.starts_with("git-receive-pack ")) wanted.access = "push";
  const std::size_t first = command.find('\'');
  const std::size_t last = command.rfind('\'');
  if (first == std::string_view::npos || last <= first) return;
  std::string_view path = command.substr(first + 1, last - first - 1);
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with(".git")) path.remove_suffix(4);
  if (is_path(path)) wanted.path = path;
}

std::string advice(const Wanted& wanted) {
  const std::string repo = fmt::format("{}/{}", wanted.host.empty() ? "HOST" : wanted.host,
                                       wanted.path.empty() ? "OWNER/REPO" : wanted.path);
  return fmt::format(
      "sallyport: git reaches granted repositories over https alone; their git@HOST:, ssh://git@HOST/ and\n"
      "sallyport: git://HOST/ URLs are turned into https by themselves. If this one is granted in another\n"
      "sallyport: spelling, use https://{}\n"
      "sallyport: Whoever runs this sandbox can allow it in its policy:\n"
      "[[git]]\nrepo = \"{}\"\naccess = \"{}\"\n",
      repo, repo, wanted.access);
}

// ssh [-o OPTION] [-p PORT] [-4 | -6] [USER@]HOST COMMAND, which is all that git makes of it.
std::string ssh_refusal(std::span<const std::string_view> arguments) {
  while (!arguments.empty() && arguments.front().starts_with('-')) {
    const bool with_value = arguments.front() == "-o" || arguments.front() == "-p";
    arguments = arguments.subspan(std::min<std::size_t>(with_value ? 2 : 1, arguments.size()));
  }
  const std::string_view destination = arguments.empty() ? std::string_view() : arguments.front();
  Wanted wanted;
  const std::string host = lowered(destination.substr(destination.rfind('@') + 1));
  if (is_host(host)) wanted.host = host;
  if (arguments.size() > 1) read_command(arguments[1], wanted);
  return fmt::format("sallyport: there is no ssh out of this sandbox, so not to '{}'\n",
                     escaped(destination, kMaxShownBytes)) +
         advice(wanted);
}

std::string git_proxy_refusal(std::span<const std::string_view> arguments) {
  const std::string_view host = arguments.empty() ? std::string_view() : arguments.front();
  Wanted wanted;
  if (is_host(host)) wanted.host = lowered(host);
  return fmt::format("sallyport: there is no git:// out of this sandbox, so not to '{}'\n",
                     escaped(host, kMaxShownBytes)) +
         advice(wanted);
}

}  // namespace

std::optional<std::string> transport_refusal(std::string_view program,
                                             std::span<const std::string_view> arguments) {
  if (program == kSshPath) return ssh_refusal(arguments);
  if (program == kGitProxyPath) return git_proxy_refusal(arguments);
  return std::nullopt;
}

}  // namespace sallyport::sandbox
