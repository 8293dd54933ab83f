#include "sandbox/private_clone.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "sandbox/git_secret.h"

namespace sallyport::sandbox {
namespace {

// Where things are in a sealed command.
constexpr char kReal[] = "/real";
constexpr char kClone[] = "/clone";
constexpr char kBundle[] = "/bundle";
constexpr char kConfiguration[] = "/configuration";
constexpr char kStart[] = "/start";

constexpr char kUncommitted[] = "refs/sallyport/uncommitted";

// By a fetch over the local protocol, so that every object is copied: no hard link, no alternates. All
// objects pass upload-pack and index-pack, no hook, template or filter of the real repository comes along.
constexpr char kMakeScript[] = R"sh(set -eu
ulimit -c 0
format=$(git -C /real rev-parse --show-object-format)
git -c init.defaultBranch=main init -q --template= --object-format="$format" /clone
cd /clone
cat /configuration >>.git/config
mkdir .git/info
if [ -n "$1" ]; then printf '/%s\n' "$1" >.git/info/exclude; fi
head=
if git -C /real rev-parse -q --verify 'HEAD^{commit}' >/dev/null; then head=+HEAD:refs/sallyport/start; fi
git fetch -q --no-tags --no-write-fetch-head --update-head-ok --update-shallow --no-auto-maintenance /real \
  '+refs/heads/*:refs/heads/*' '+refs/tags/*:refs/tags/*' '+refs/remotes/*:refs/remotes/*' $head
if branch=$(git -C /real symbolic-ref -q HEAD); then
  git symbolic-ref HEAD "$branch"
else
  git update-ref --no-deref HEAD refs/sallyport/start
fi
if [ -n "$head" ]; then
  git reset -q --hard
  git update-ref -d refs/sallyport/start
  git rev-parse --verify HEAD | sed 's/^/^/'
fi
git for-each-ref --format='^%(objectname)'
)sh";

// The clone may be anything by now; whatever it makes git do, it does in here. What is not committed is put
// on top of HEAD, by an index of our own: the clone's may be locked by a git that was killed.
constexpr char kPackScript[] = R"sh(set -eu
ulimit -c 0
cd /clone
head=$(git rev-parse -q --verify 'HEAD^{commit}' || true)
git update-ref -d refs/sallyport/uncommitted
if [ -e .git/index ]; then cp .git/index /tmp/index; fi
export GIT_INDEX_FILE=/tmp/index
git status --porcelain >/tmp/status
if [ -s /tmp/status ]; then
  git add -A
  tree=$(git write-tree)
  left=$(echo 'What a sandbox left uncommitted' | git commit-tree "$tree" ${head:+-p $head})
  git update-ref refs/sallyport/uncommitted "$left"
fi
git for-each-ref --format='%(refname)' refs/heads refs/sallyport/uncommitted >/tmp/revisions
if [ -n "$head" ] && ! git symbolic-ref -q HEAD >/dev/null; then echo HEAD >>/tmp/revisions; fi
cat /start >>/tmp/revisions
git rev-list -n 1 --stdin </tmp/revisions >/tmp/new
if [ -s /tmp/new ]; then
  exec git bundle create -q - --stdin </tmp/revisions
fi
)sh";

// The real repository is the user's own, but nothing in its configuration shall run, or fetch more, for this.
constexpr char kFetchScript[] = R"sh(set -eu
ulimit -c 0
id=$1
shift
git -C /real -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.logAllRefUpdates=false \
  -c gc.auto=0 -c maintenance.auto=false -c transfer.fsckObjects=true -c fetch.fsckObjects=true \
  -c fetch.unpackLimit=1 -c fetch.writeCommitGraph=false -c submodule.recurse=false \
  fetch -q --no-tags --no-write-fetch-head --no-recurse-submodules --no-auto-maintenance --no-prune \
  --refmap= /bundle "$@"
git -C /real for-each-ref --format='%(refname)' "refs/sallyport/$id/"
)sh";

SealedSpec sealed(const char* script, std::vector<std::string> arguments, std::vector<Mount> mounts) {
  SealedSpec spec;
  spec.profile = make_profile({.ids = {},
                               .user_name = "sallyport",
                               .home = "/",
                               .system_roots_pem = "",
                               .session_ca_pem = "",
                               .git = {.name = "Sallyport", .email = "sallyport@localhost"},
                               .safe_folders = {"*"},
                               .git_prefixes = {}});
  spec.mounts = std::move(mounts);
  spec.argv = {"/bin/sh", "-c", script, "git"};
  std::ranges::move(arguments, std::back_inserter(spec.argv));
  spec.environment = {"PATH=/usr/bin:/bin",    "HOME=/tmp",           "LC_ALL=C",
                      "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=file",
                      "GIT_ATTR_NOSYSTEM=1",   "GIT_OPTIONAL_LOCKS=0"};
  return spec;
}

Mount at(Mount mount, const char* path, Access access) {
  mount.path = path;
  mount.access = access;
  return mount;
}

template <class... More>
std::vector<Mount> mounts_of(More... more) {
  std::vector<Mount> mounts;
  (mounts.push_back(std::move(more)), ...);
  return mounts;
}

std::unexpected<Error> bad(std::string_view what) {
  return fail(Reason::BadRequest, fmt::format("the bundle of the private clone: {}", what));
}

bool is_carried(const GitConfigEntry& entry) {
  struct Carried {
    std::string_view section;
    std::string_view name;
  };
  constexpr Carried kCarried[] = {
      {"remote", "url"},    {"remote", "pushurl"}, {"remote", "fetch"},  {"branch", "remote"},
      {"branch", "merge"},  {"branch", "rebase"},  {"user", "name"},     {"user", "email"},
      {"core", "autocrlf"}, {"core", "eol"},       {"core", "filemode"}, {"core", "ignorecase"},
  };
  return std::ranges::any_of(
      kCarried, [&](const Carried& one) { return one.section == entry.section && one.name == entry.name; });
}

}  // namespace

std::string clone_configuration(const std::vector<GitConfigEntry>& entries) {
  std::string text;
  for (const GitConfigEntry& entry : entries) {
    if (!entry.value || !is_carried(entry)) continue;
    std::string value = *entry.value;
    if (secret_in(entry)) {
      auto clean = without_userinfo(value);
      if (!clean || entry.section != "remote") continue;
      value = std::move(*clean);
    }
    const std::string subsection = git_quoted(entry.subsection.value_or(""));
    const std::string quoted = git_quoted(value);
    if (subsection.empty() || quoted.empty()) continue;
    text += fmt::format("[{}{}]\n\t{} = {}\n", entry.section, entry.subsection ? " " + subsection : "",
                        entry.name, quoted);
  }
  return text;
}

SealedSpec make_clone(Mount real, Mount clone, std::string configuration, const std::string& ignored) {
  SealedSpec spec = sealed(kMakeScript, {ignored},
                           mounts_of(at(std::move(real), kReal, Access::ReadOnly),
                                     at(std::move(clone), kClone, Access::ReadWrite)));
  spec.profile.files.push_back({kConfiguration, std::move(configuration)});
  return spec;
}

SealedSpec pack_clone(Mount clone, std::string start) {
  SealedSpec spec = sealed(kPackScript, {}, mounts_of(at(std::move(clone), kClone, Access::ReadWrite)));
  spec.profile.files.push_back({kStart, std::move(start)});
  return spec;
}

Result<BundleHead> parse_bundle_head(std::string_view bytes) {
  BundleHead head;
  bool first = true;
  for (;;) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return bad("its head has no end");
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (std::exchange(first, false)) {
      if (line != "# v2 git bundle" && line != "# v3 git bundle") return bad("is none");
    } else if (line.empty()) {
      return head;
    } else if (line.starts_with('@')) {
      // Above all no filter: what is left out would be taken for something that can be had elsewhere.
      if (line != "@object-format=sha1" && line != "@object-format=sha256")
        return bad("an unknown capability");
    } else if (!line.starts_with('-')) {
      const std::size_t space = std::min(line.find(' '), line.size());
      if (space == line.size() || !std::ranges::all_of(line.substr(0, space), is_hex)) return bad("a line");
      const std::string_view ref = line.substr(space + 1);
      if (ref != "HEAD" && ref != kUncommitted && !ref.starts_with("refs/heads/")) return bad("a ref");
      if (head.refs.size() == kMaxBundleRefs) return bad(fmt::format("more than {} refs", kMaxBundleRefs));
      head.refs.emplace_back(ref);
    }
  }
}

std::vector<std::string> refspecs_for(const BundleHead& head, const std::string& id) {
  const auto holds = [&](std::string_view ref) {
    return std::ranges::find(head.refs, ref) != head.refs.end();
  };
  const bool branches =
      std::ranges::any_of(head.refs, [](const std::string& ref) { return ref.starts_with("refs/heads/"); });
  std::vector<std::string> specs;
  if (branches) specs.push_back(fmt::format("+refs/heads/*:refs/sallyport/{}/heads/*", id));
  if (holds(kUncommitted))
    specs.push_back(fmt::format("+{}:refs/sallyport/{}/uncommitted", kUncommitted, id));
  if (holds("HEAD")) specs.push_back(fmt::format("+HEAD:refs/sallyport/{}/HEAD", id));
  return specs;
}

SealedSpec fetch_bundle(Mount real, Mount bundle, const BundleHead& head, const std::string& id) {
  std::vector<std::string> arguments = refspecs_for(head, id);
  arguments.insert(arguments.begin(), id);
  return sealed(kFetchScript, std::move(arguments),
                mounts_of(at(std::move(real), kReal, Access::ReadWrite),
                          at(std::move(bundle), kBundle, Access::ReadOnly)));
}

}  // namespace sallyport::sandbox
