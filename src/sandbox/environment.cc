// The environment of a sandbox: make_environment() of profile.h.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/text.h"
#include "os/netns.h"
#include "sandbox/profile.h"
#include "sandbox/token_shape.h"
#include "sandbox/transport_refusal.h"

namespace sallyport::sandbox {
namespace {

constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

// Of the caller's, besides every LC_ variable.
constexpr std::string_view kInherited[] = {"PATH", "TERM",   "COLORTERM", "LANG",  "LANGUAGE",
                                           "TZ",   "EDITOR", "VISUAL",    "PAGER", "NO_COLOR"};

// Of the caller's as well, though not for the sandbox: where its agents' sockets are.
constexpr std::string_view kDangers[] = {"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST",
                                         "XDG_RUNTIME_DIR"};

// One combined bundle for all who replace their roots by it.
constexpr const char* kCaBundleVariables[] = {
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "AWS_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
    "NPM_CONFIG_CAFILE",
    "YARN_HTTPS_CA_FILE_PATH",
    "BUNDLE_SSL_CA_CERT",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "HEX_CACERTS_PATH",
    "PERL_LWP_SSL_CA_FILE",
};

struct Setting {
  const char* name;
  const char* value;
};

constexpr Setting kFixed[] = {
    {"NODE_EXTRA_CA_CERTS", kSessionCaPath},  // added to Node's own roots
    {"UV_SYSTEM_CERTS", "1"},
    {"UV_NATIVE_TLS", "1"},
    {"GIT_TERMINAL_PROMPT", "0"},
    {"GIT_CONFIG_SYSTEM", "/etc/gitconfig"},  // a git that was not built for /usr looks elsewhere
    {"GIT_SSH_COMMAND", kSshPath},            // each says why there is no such way out
    {"GIT_SSH_VARIANT", "ssh"},
    {"GIT_PROXY_COMMAND", kGitProxyPath},
};

// For clients that resolve no names themselves once they are told of a proxy. The ways without one lead to
// the same policy, so --env may say something else.
constexpr const char* kProxyVariables[] = {"http_proxy",  "HTTP_PROXY", "https_proxy",
                                           "HTTPS_PROXY", "all_proxy",  "ALL_PROXY"};
constexpr const char* kNoProxyVariables[] = {"no_proxy", "NO_PROXY"};
constexpr const char* kNoProxy = "localhost,127.0.0.1,::1";

// Through GIT_CONFIG_COUNT, since that stands above a repository's own configuration: a hostile repository
// must not be able to name a program for git to run, nor a helper to be asked for credentials.
constexpr Setting kGitSettings[] = {
    {"core.hooksPath", "/dev/null"},  {"core.fsmonitor", "false"},     {"core.askPass", ""},
    {"credential.helper", ""},  // empty: forgets all that were configured before
    {"protocol.file.allow", "never"}, {"protocol.ext.allow", "never"},
};

// What fits the image, and not the host.
constexpr std::string_view kImagesOwn[] = {"PATH", "SHELL", "LANG"};

// Not to be had by --env.
constexpr std::string_view kRefusedNames[] = {"HOME", "USER",          "LOGNAME",
                                              "PWD",  "SSH_AUTH_SOCK", "SSH_AGENT_PID"};
constexpr std::string_view kRefusedPrefixes[] = {"DBUS_", "GIT_CONFIG"};

constexpr std::string_view kCredentialWords[] = {
    "token", "secret", "password", "passwd", "api_key", "apikey", "credential", "private_key", "access_key"};

bool is_name(std::string_view text) {
  if (text.empty() || is_digit(text.front())) return false;
  return std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '_'; });
}

bool is_ours(std::string_view name) {
  return std::ranges::any_of(kCaBundleVariables, [&](const char* ours) { return name == ours; }) ||
         std::ranges::any_of(kFixed, [&](const Setting& setting) { return name == setting.name; });
}

bool is_refused(std::string_view name) {
  return is_ours(name) || std::ranges::find(kRefusedNames, name) != std::end(kRefusedNames) ||
         std::ranges::any_of(kRefusedPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool looks_like_credential(std::string_view name, std::string_view value) {
  const std::string low = lowered(name);
  return std::ranges::any_of(kCredentialWords, [&](std::string_view word) { return low.contains(word); }) ||
         begins_like_token(value);
}

bool is_inherited(std::string_view name) {
  return std::ranges::find(kInherited, name) != std::end(kInherited) ||
         (name.starts_with("LC_") && is_name(name));
}

using Variables = std::map<std::string, std::string, std::less<>>;

Variables parse_caller(const std::vector<std::string>& caller) {
  Variables variables;
  for (const std::string& line : caller) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    variables.emplace(line.substr(0, equals), line.substr(equals + 1));  // the first counts, as for getenv(3)
  }
  return variables;
}

Variables fixed_variables(const ProfileInput& input, const std::string& cwd) {
  Variables variables = {{"PATH", kDefaultPath}, {"TERM", "dumb"}, {"LANG", "C.UTF-8"}};
  variables["HOME"] = input.home;
  variables["USER"] = input.user_name;
  variables["LOGNAME"] = input.user_name;
  variables["SHELL"] = ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
  variables["PWD"] = cwd;
  for (const char* name : kCaBundleVariables) variables[name] = kCaBundlePath;
  for (const Setting& setting : kFixed) variables[setting.name] = setting.value;
  // Debian's Java looks there by itself. --env may say more: it is the place for every other option too.
  variables["JAVA_TOOL_OPTIONS"] = fmt::format("-Djavax.net.ssl.trustStore={}", kJavaTrustPath);
  for (const char* name : kProxyVariables) {
    variables[name] = fmt::format("http://{}:{}", os::kSandboxAddress, os::kSandboxProxyPort);
  }
  for (const char* name : kNoProxyVariables) variables[name] = kNoProxy;
  std::size_t count = 0;
  for (const Setting& setting : kGitSettings) {
    variables[fmt::format("GIT_CONFIG_KEY_{}", count)] = setting.name;
    variables[fmt::format("GIT_CONFIG_VALUE_{}", count)] = setting.value;
    ++count;
  }
  variables["GIT_CONFIG_COUNT"] = std::to_string(count);
  return variables;
}

std::vector<std::string> lines_of(const Variables& variables) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(fmt::format("{}={}", name, value));
  return lines;
}

Status check_name(const std::string& name) {
  if (!is_refused(name)) return {};
  return fail(Reason::BadRequest,
              "--env " + name + ": set by Sallyport inside a sandbox, or kept out of it; leave it away");
}

}  // namespace

Result<EnvironmentRequest> parse_environment_request(std::string_view text) {
  EnvironmentRequest request;
  const std::size_t equals = text.find('=');
  request.name = std::string(text.substr(0, equals));
  if (equals != std::string_view::npos) request.value = std::string(text.substr(equals + 1));
  if (!is_name(request.name)) {
    return fail(Reason::BadRequest,
                "--env " + escaped(request.name, 64) + ": a name is letters, digits and _");
  }
  if (request.value && request.value->contains('\0')) {
    return fail(Reason::BadRequest, "--env " + request.name + ": the value holds a NUL byte");
  }
  return request;
}

bool counts(std::string_view variable_name) {
  return is_inherited(variable_name) || std::ranges::find(kDangers, variable_name) != std::end(kDangers);
}

Result<Environment> make_environment(const ProfileInput& input, const std::vector<std::string>& caller,
                                     const std::vector<EnvironmentRequest>& requests,
                                     const std::string& cwd) {
  const Variables theirs = parse_caller(caller);
  Variables variables = fixed_variables(input, cwd);
  for (const auto& [name, value] : theirs) {
    if (is_inherited(name)) variables[name] = value;
  }

  Environment environment;
  for (const EnvironmentRequest& request : requests) {
    if (auto status = check_name(request.name); !status) return fail(std::move(status));
    const auto own = theirs.find(request.name);
    if (!request.value && own == theirs.end()) {
      environment.warnings.push_back("--env " + request.name + ": not set here, so not set inside");
      continue;
    }
    const std::string& value = request.value ? *request.value : own->second;
    if (looks_like_credential(request.name, value)) {
      environment.warnings.push_back(
          "--env " + request.name +
          ": looks like a credential, and everything in the sandbox can read it; a "
          "credential belongs in the operator's configuration, where no sandbox sees it");
    }
    variables[request.name] = value;
  }
  environment.variables = lines_of(variables);
  return environment;
}

std::vector<std::string> environment_over_image(const std::vector<std::string>& image,
                                                const std::vector<std::string>& ours,
                                                const std::vector<std::string>& additions) {
  const Variables added = parse_caller(additions);
  Variables all = parse_caller(ours);
  if (!added.contains("PATH")) all["PATH"] = kDefaultPath;
  if (!added.contains("SHELL")) all["SHELL"] = "/bin/sh";
  for (const auto& [name, value] : parse_caller(image)) {
    const bool images_own = std::ranges::find(kImagesOwn, name) != std::end(kImagesOwn);
    if (images_own && !added.contains(name)) all[name] = value;
    if (is_name(name) && !is_refused(name)) all.emplace(name, value);
  }
  return lines_of(all);
}

Result<std::vector<std::string>> add_to_environment(const std::vector<std::string>& variables,
                                                    const std::vector<std::string>& additions,
                                                    const std::string& cwd) {
  Variables all = parse_caller(variables);
  all["PWD"] = cwd;
  for (const std::string& text : additions) {
    auto addition = parse_environment_request(text);
    if (!addition) return fail(std::move(addition));
    if (auto status = check_name(addition->name); !status) return fail(std::move(status));
    if (!addition->value) return fail(Reason::BadRequest, "--env " + addition->name + ": has no value");
    all[addition->name] = std::move(*addition->value);
  }
  return lines_of(all);
}

}  // namespace sallyport::sandbox
