#include "cli/paths.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "session/places.h"

namespace sallyport::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The shell's own spelling, which may lead through links, when it is the same folder.
Result<std::string> working_directory() {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::current_path(error);
  if (error) return fail(Reason::Internal, "the working directory: " + error.message());
  const std::string spelled = variable("PWD");
  // POSIX: a PWD with "." or ".." in it does not count; through a link they would lead elsewhere.
  const auto is_dotted = [](const std::filesystem::path& part) { return part == "." || part == ".."; };
  const bool plain = std::ranges::none_of(std::filesystem::path(spelled), is_dotted);
  if (plain && spelled.starts_with('/') && std::filesystem::equivalent(spelled, real, error) && !error) {
    std::string normal = std::filesystem::path(spelled).lexically_normal().string();
    if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
    return normal;
  }
  return real.string();
}

}  // namespace

Result<Paths> find_paths() {
  Paths paths;
  paths.home = variable("HOME");
  if (!paths.home.starts_with('/')) {
    const passwd* account = ::getpwuid(::geteuid());
    paths.home = account != nullptr ? account->pw_dir : "/nonexistent";
  }
  auto directory = working_directory();
  if (!directory) return fail(std::move(directory));
  paths.working_directory = std::move(*directory);
  const session::Places places = session::user_places(paths.home);
  paths.config = places.config;
  paths.state = places.state;
  paths.audit = places.audit();
  paths.trust = places.trust();
  return paths;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  return variables;
}

std::string absolute(const std::string& path, const Paths& paths) {
  std::string result = (std::filesystem::path(paths.working_directory) / path).lexically_normal().string();
  if (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

config::Sources sources_of(const FileOptions& files, const Paths& paths) {
  using config::Presence;
  return {
      .policy_path = absolute(files.policy.value_or("sallyport.toml"), paths),
      .policy = files.policy ? Presence::Named : Presence::Usual,
      .config_path = files.config ? absolute(*files.config, paths) : paths.config,
      .config = files.config ? Presence::Named : Presence::Usual,
      .git_options = {},
      .trust_folder = paths.trust,
  };
}

}  // namespace sallyport::cli
