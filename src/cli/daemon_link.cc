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

std::string socket_path(const DaemonOptions& options) {
  if (options.socket) return std::filesystem::absolute(*options.socket).lexically_normal();
  if (::geteuid() != 0) {
    auto own = os::rootless_control_socket(std::getenv("XDG_RUNTIME_DIR"));
    std::error_code error;
    if (own && std::filesystem::exists(*own, error)) return *std::move(own);
    if (own && !std::filesystem::exists(os::kSystemControlSocket, error)) return *std::move(own);
  }
  return os::kSystemControlSocket;
}

}  // namespace

Result<control::ApiClient> link_to_daemon(const DaemonOptions& options) {
  return control::ApiClient(socket_path(options), ::geteuid());
}

Result<std::string> session_path(const std::string& session, const std::string& rest) {
  const auto fits = [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; };
  if (session.empty() || !std::ranges::all_of(session, fits)) {
    return fail(Reason::BadRequest, fmt::format("there is no session '{}'", escaped(session, 64)));
  }
  return "/v1/sessions/" + session + rest;
}

Error error_of(const json::object& line) {
  const json::object* error = line.at("error").if_object();
  if (error == nullptr) return {Reason::UpstreamMalformed, "the daemon's answer cannot be read"};
  std::string text = control::text_of(*error, "message");
  if (const std::string hint = control::text_of(*error, "hint"); !hint.empty()) text += "\n" + hint;
  return {Reason::SessionEnded, text};
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
    if (line->contains("error")) return std::unexpected(error_of(*line));
    if (line->contains("notice")) on_notice(control::text_of(*line, "notice"));
    const json::value* session = line->if_contains("session");
    if (session != nullptr && session->is_object()) return session->as_object();
  }
}

int failed(const Error& error) {
  fmt::print(stderr, "sallyport: {}\n", error.detail);
  return kExitFailed;
}

}  // namespace sallyport::cli
