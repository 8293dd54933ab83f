#include "cli/daemon_link.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "os/control_socket.h"

namespace sallyport::cli {
namespace {

namespace json = boost::json;

// A start may have to clone first.
constexpr std::chrono::minutes kFirstLineLimit{10};

std::string named_socket(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal();
}

std::string socket_path(const DaemonOptions& options) {
  auto own = own_socket(options);
  if (options.socket || ::geteuid() == 0) return *own;
  std::error_code error;
  if (own && std::filesystem::exists(*own, error)) return *std::move(own);
  if (own && !std::filesystem::exists(os::kSystemControlSocket, error)) return *std::move(own);
  return os::kSystemControlSocket;
}

}  // namespace

Result<std::string> own_socket(const DaemonOptions& options) {
  if (options.socket) return named_socket(*options.socket);
  if (::geteuid() == 0) return os::kSystemControlSocket;
  return os::rootless_control_socket(std::getenv("XDG_RUNTIME_DIR"));
}

Result<control::ApiClient> link_to_daemon(const DaemonOptions& options) {
  const std::string path = socket_path(options);
  return control::ApiClient(
      path, ::geteuid(),
      options.socket ? "sallyport gateway start --socket " + path : "sallyport gateway start");
}

Result<std::string> session_path(const std::string& session, const std::string& rest) {
  const auto fits = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (session.empty() || !std::ranges::all_of(session, fits)) {
    return fail(Reason::BadRequest, fmt::format("there is no session '{}'", escaped(session, 64)));
  }
  return "/v1/sessions/" + session + rest;
}

Result<json::object> follow(const control::ApiClient& daemon, const control::ApiRequest& request,
                            const std::function<void(const std::string&)>& on_notice) {
  auto stream = daemon.stream(request, kFirstLineLimit);
  if (!stream) return fail(std::move(stream));
  for (;;) {
    auto step = stream->next();
    if (!step) return fail(std::move(step));
    if (step->kind == control::ApiStream::Step::Kind::End) {
      return fail(Reason::UpstreamTruncated, "the daemon ended before it was done");
    }
    const json::object* line = step->line.if_object();
    if (line == nullptr) continue;
    if (auto error = control::error_in(*line)) return std::unexpected(std::move(*error));
    if (line->contains("notice")) on_notice(control::text_of(*line, "notice"));
    const json::value* session = line->if_contains("session");
    if (session != nullptr && session->is_object()) return session->as_object();
  }
}

}  // namespace sallyport::cli
