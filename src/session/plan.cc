#include "session/plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <ranges>
#include <set>
#include <span>

#include "base/text.h"
#include "os/act_as.h"
#include "os/safe_path.h"
#include "sandbox/beneath.h"
#include "sandbox/git_secret_search.h"

namespace sallyport::session {
namespace {

constexpr os::Ids kNobody{.uid = 65'534, .gid = 65'534};
constexpr std::size_t kMaxPasswdBytes = 4 * 1024 * 1024;
// Every git command inside reads all of them. Beyond it URLs must be written as https.
constexpr std::size_t kMaxGitPrefixes = 200;

std::string caller_variable(const Request& request, std::string_view name) {
  for (const std::string& variable : request.environment) {
    if (variable.size() > name.size() && variable.starts_with(name) && variable[name.size()] == '=') {
      return variable.substr(name.size() + 1);
    }
  }
  return "";
}

std::string passwd_text() {
  const Fd file(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  if (!file) return "";
  return os::read_whole(file.get(), kMaxPasswdBytes).value_or("");
}

std::expected<void, std::string> add_grant(const Request& request, Plan& plan) {
  auto granted = plan_grant(request.sources, request.client);
  if (!granted) return std::unexpected(std::move(granted).error());
  static_cast<GrantPlan&>(plan) = std::move(*granted);
  if (plan.grant.empty()) {
    plan.notices.push_back(
        fmt::format("no policy: nothing is reachable from this sandbox. Write {}, or name a repository: "
                    "--git HOST/OWNER/REPO",
                    escaped(request.sources.policy_path)));
  }
  return {};
}

// Whoever asks. A sandbox that could write these would write its own permissions, or its own history.
sandbox::Dangers own_dangers(const Request& request, const Plan& plan) {
  sandbox::DangerInput input;
  if (const char* home = std::getenv("HOME")) input.own_homes.emplace_back(home);
  input.sallyport_folders = {request.sources.config_path, request.audit_path, request.state_folder};
  std::ranges::copy(request.daemon_folders, std::back_inserter(input.sallyport_folders));
  std::ranges::copy(plan.credential_files, std::back_inserter(input.sallyport_folders));
  return sandbox::dangerous_paths(input);
}

// What the request names is believed as far as it adds to what is dangerous.
sandbox::Dangers callers_dangers(const Request& request, const Plan& plan) {
  sandbox::DangerInput input;
  input.own_homes = {plan.identities.home};
  const bool is_believed = !request.client;
  if (is_believed) input.own_homes.push_back(request.home);
  input.other_homes = sandbox::other_homes(passwd_text(), input.own_homes);
  if (!is_believed) input.own_homes.push_back(request.home);
  input.sallyport_folders = {request.sources.trust_folder};
  if (const std::string runtime = caller_variable(request, "XDG_RUNTIME_DIR"); !runtime.empty()) {
    input.sallyport_folders.push_back(runtime + "/sallyport");
  }
  input.ssh_agent = caller_variable(request, "SSH_AUTH_SOCK");
  input.dbus_address = caller_variable(request, "DBUS_SESSION_BUS_ADDRESS");
  input.docker_host = caller_variable(request, "DOCKER_HOST");
  return sandbox::dangerous_paths(input);
}

void add(sandbox::Dangers& dangers, sandbox::Dangers more) {
  std::ranges::move(more.paths, std::back_inserter(dangers.paths));
  std::ranges::move(more.own_homes, std::back_inserter(dangers.own_homes));
}

// The workspace itself does not go into a sandbox that gets a clone of it.
std::span<const sandbox::Mount> seen_mounts(const Plan& plan) {
  return std::span<const sandbox::Mount>(plan.mounts).subspan(plan.private_git ? 1 : 0);
}

// Git shall work on what the user mounts, whoever owns it.
void add_mount(sandbox::Mount mount, Plan& plan) {
  if (mount.owner != plan.identities.sandbox.uid) plan.profile.safe_folders.push_back(mount.path);
  plan.mounts.push_back(std::move(mount));
}

// A linked worktree, or a submodule, has its repository elsewhere: git does not work without it.
std::expected<void, std::string> add_linked_repositories(Plan& plan, const sandbox::Dangers& dangers) {
  auto linked = sandbox::linked_repositories(seen_mounts(plan), plan.identities.become_sandbox);
  if (!linked) return std::unexpected(linked.error().detail);
  for (const sandbox::MountRequest& request : *linked) {
    auto mount = sandbox::open_mount(request, dangers, {});
    if (!mount) return std::unexpected(mount.error().detail);
    plan.notices.push_back(
        fmt::format("{} is the repository of this workspace, and is mounted as well", mount->path));
    add_mount(std::move(*mount), plan);
  }
  return {};
}

// What lies in the mounts and would be a way out, or would run when the host's user calls git there later.
std::expected<void, std::string> guard_mounts(const Request& request, Plan& plan) {
  auto guard = sandbox::guard_workspace(seen_mounts(plan), {.policy_path = request.sources.policy_path,
                                                            .home = request.home,
                                                            .client = request.client,
                                                            .become = plan.identities.become_sandbox});
  if (!guard) return std::unexpected(guard.error().detail);
  plan.guard = std::move(*guard);
  std::ranges::move(plan.guard.notices, std::back_inserter(plan.notices));
  std::ranges::move(plan.guard.mounts, std::back_inserter(plan.mounts));
  plan.guard.mounts.clear();
  return {};
}

// Where a sandbox may write, so that a link there may be a sandbox's. What cannot be resolved is refused when
// it is opened.
std::vector<std::string> writable_folders(const std::vector<sandbox::MountRequest>& requests) {
  std::vector<std::string> folders;
  for (const sandbox::MountRequest& request : requests) {
    if (request.access == sandbox::Access::ReadOnly) continue;
    std::error_code error;
    const auto resolved = std::filesystem::canonical(request.path, error);
    if (!error) folders.push_back(resolved.string());
  }
  return folders;
}

std::expected<void, std::string> plan_private_git(const Request& request, Plan& plan) {
  if (!request.private_git) return {};
  struct stat status{};
  const std::string git = plan.mounts.front().path + "/.git";
  if (::lstat(git.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return std::unexpected(fmt::format(
        "--private-git: {} is no folder; start in the top folder of a repository that is no linked worktree",
        git));
  }
  plan.private_git = true;
  return {};
}

bool lies_in_any(const std::vector<sandbox::Mount>& mounts, const std::string& path) {
  return std::ranges::any_of(
      mounts, [&](const sandbox::Mount& mount) { return sandbox::is_or_lies_in(path, mount.path); });
}

// Bubblewrap mounts by the sandbox's rights, when we are root, and says no more than that it could not.
std::expected<void, std::string> check_reach(const Plan& plan) {
  const os::ActAs as_sandbox(plan.identities.become_sandbox);
  for (const sandbox::Mount& mount : plan.mounts) {
    if (Fd(::open(mount.path.c_str(), O_PATH | O_CLOEXEC)) || errno != EACCES) continue;
    return std::unexpected(fmt::format(
        "{0} cannot be reached by uid {1}, as whom the sandbox runs: a folder on the way there is "
        "closed to it, which `namei -l {0}` shows",
        escaped(mount.path), plan.identities.sandbox.uid));
  }
  return {};
}

// A policy file is not trusted because it lies there: inside it cannot be changed. One that lies in no mount
// is out of the sandbox's reach as it is.
std::expected<void, std::string> plan_policy(const Request& request, Plan& plan,
                                             const sandbox::Dangers& dangers) {
  const std::string& path = request.sources.policy_path;
  if (!os::path_exists(path)) return {};
  // A link is only a name, which the sandbox could give to another file.
  if (std::filesystem::is_symlink(path)) {
    return std::unexpected(fmt::format(
        "{} is a symbolic link; put the policy itself there, or name the file it leads to with --policy",
        path));
  }
  std::vector<std::string> writable;
  for (const sandbox::Mount& mount : plan.mounts) {
    if (mount.access == sandbox::Access::ReadWrite) writable.push_back(mount.path);
  }
  auto real = sandbox::resolve(path, writable);
  if (!real) return std::unexpected(real.error().detail);
  if (!lies_in_any(plan.mounts, *real)) return {};
  auto mount = sandbox::open_mount({path, sandbox::Access::ReadOnly}, dangers, writable);
  if (!mount) return std::unexpected(mount.error().detail);
  add_mount(std::move(*mount), plan);
  return {};
}

std::expected<void, std::string> plan_mounts(const Request& request, Plan& plan,
                                             const sandbox::Dangers& dangers) {
  std::vector<sandbox::MountRequest> requests = {{request.working_directory, sandbox::Access::ReadWrite}};
  for (const std::string& text : request.mounts) {
    auto parsed = sandbox::parse_mount(text);
    if (!parsed) return std::unexpected(parsed.error().detail);
    requests.push_back(std::move(*parsed));
  }
  const std::vector<std::string> writable = writable_folders(requests);
  for (const sandbox::MountRequest& mount_request : requests) {
    auto mount = sandbox::open_mount(mount_request, dangers, writable);
    if (!mount) return std::unexpected(mount.error().detail);
    add_mount(std::move(*mount), plan);
  }
  if (auto possible = plan_private_git(request, plan); !possible) return possible;
  if (auto linked = add_linked_repositories(plan, dangers); !linked) return linked;
  if (auto guarded = plan_policy(request, plan, dangers); !guarded) return guarded;
  return request.image.empty() ? check_reach(plan) : std::expected<void, std::string>();
}

// A credential in a repository's configuration would be read by whatever runs inside.
std::expected<void, std::string> refuse_git_secrets(const Request& request, Plan& plan) {
  auto search = sandbox::search_git_secrets(seen_mounts(plan), request.home);
  if (!search) return std::unexpected(search.error().detail);
  if (search->total > 0) return std::unexpected(sandbox::text_of(*search));
  if (search->search == sandbox::Search::CutShort) {
    plan.notices.push_back(
        "the workspace or a mount is too large to be searched for credentials in git's "
        "configuration to its end");
  }
  return {};
}

std::expected<void, std::string> plan_identities(const Request& request, Plan& plan) {
  if (request.client) {
    plan.identities = identities_for(*request.client);
    return {};
  }
  struct stat workspace{};
  if (::stat(request.working_directory.c_str(), &workspace) != 0) {
    return std::unexpected(fmt::format("{}: {}", request.working_directory, errno_text(errno)));
  }
  auto identities =
      choose_identities({::geteuid(), ::getegid()}, {workspace.st_uid, workspace.st_gid}, request.home);
  if (!identities) return std::unexpected(identities.error().detail);
  plan.identities = std::move(*identities);
  return {};
}

// The hosts of the grant, and its repositories as far as a rule names them without '*': what URLs of theirs
// begin with behind "https://".
std::vector<std::string> git_prefixes(const policy::Grant& grant) {
  std::set<std::string> hosts;
  std::set<std::string> repos;
  for (const policy::GitRule& rule : grant.git) {
    const std::string pattern = rule.repo.str();
    const std::string host = rule.repo.host().str() + "/";
    const std::string prefix = pattern.substr(0, pattern.find('*'));
    hosts.insert(host);
    if (prefix != host) repos.insert(prefix);
  }
  std::vector<std::string> prefixes;
  std::ranges::copy(hosts | std::views::take(kMaxGitPrefixes), std::back_inserter(prefixes));
  std::ranges::copy(repos | std::views::take(kMaxGitPrefixes - prefixes.size()),
                    std::back_inserter(prefixes));
  return prefixes;
}

std::expected<void, std::string> plan_profile(const Request& request, Plan& plan) {
  plan.working_directory = request.working_directory;
  plan.profile.ids = plan.identities.sandbox;
  plan.profile.user_name = plan.identities.user_name;
  plan.profile.home = plan.identities.home;
  auto roots = sandbox::read_system_roots();
  if (!roots) return std::unexpected(roots.error().detail);
  plan.profile.system_roots_pem = std::move(*roots);
  plan.profile.git = sandbox::read_git_identity(request.home);
  plan.profile.git_prefixes = git_prefixes(plan.grant);

  std::vector<sandbox::EnvironmentRequest> additions;
  for (const std::string& text : request.extra_environment) {
    auto parsed = sandbox::parse_environment_request(text);
    if (!parsed) return std::unexpected(parsed.error().detail);
    additions.push_back(std::move(*parsed));
  }
  // What of the caller's fits the host's programs need not fit an image's.
  auto environment = sandbox::make_environment(
      plan.profile, request.image.empty() ? request.environment : std::vector<std::string>(), additions,
      request.working_directory);
  if (!environment) return std::unexpected(environment.error().detail);
  plan.environment = std::move(environment->variables);
  std::ranges::move(environment->warnings, std::back_inserter(plan.notices));
  return {};
}

// It brings its own files, environment and user; ours there is nobody.
std::expected<void, std::string> plan_adoption(const Request&, Plan& plan) {
  plan.identities = service_identities({::geteuid(), ::getegid()});
  plan.identities.sandbox = kNobody;
  plan.profile.ids = kNobody;
  auto roots = sandbox::read_system_roots();
  if (!roots) return std::unexpected(roots.error().detail);
  plan.profile.system_roots_pem = std::move(*roots);
  plan.profile.git_prefixes = git_prefixes(plan.grant);
  plan.working_directory = "/";
  return {};
}

}  // namespace

std::expected<Plan, std::string> make_plan(const Request& request) {
  Plan plan;
  if (auto done = add_grant(request, plan); !done) return std::unexpected(std::move(done).error());
  if (!request.adopted.empty()) {
    if (auto done = plan_adoption(request, plan); !done) return std::unexpected(std::move(done).error());
    return plan;
  }
  if (auto done = plan_identities(request, plan); !done) return std::unexpected(std::move(done).error());
  sandbox::Dangers dangers = own_dangers(request, plan);
  // From here on everything is the client's: what it names, and what lies there.
  const os::ActAs as_client(request.client);
  add(dangers, callers_dangers(request, plan));
  if (auto done = plan_mounts(request, plan, dangers); !done) return std::unexpected(std::move(done).error());
  for (const auto step : {refuse_git_secrets, guard_mounts, plan_profile}) {
    if (auto done = step(request, plan); !done) return std::unexpected(std::move(done).error());
  }
  return plan;
}

}  // namespace sallyport::session
