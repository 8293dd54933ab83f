#include "sandbox/profile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "os/netns.h"
#include "sandbox/git_config.h"
#include "sandbox/java_trust.h"
#include "sandbox/transport_refusal.h"

namespace sallyport::sandbox {
namespace {

namespace fs = std::filesystem;

// Beside /usr. On a merged-/usr system these are links into it, elsewhere folders.
constexpr const char* kSystemFolders[] = {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

// What programs want to read, and what no administrator keeps a secret in: so not /etc/environment,
// /etc/profile.d, /etc/npmrc, /etc/pip.conf, /etc/apt, /etc/gitconfig, /etc/ssh.
constexpr const char* kEtc[] = {
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/bindresvport.blacklist",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/emacs",
    "/etc/ethertypes",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/inputrc",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/mailcap",
    "/etc/manpath.config",
    "/etc/mime.types",
    "/etc/nanorc",
    "/etc/networks",
    "/etc/os-release",
    "/etc/perl",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/python3.11",
    "/etc/redhat-release",
    "/etc/rpc",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/vim",
    "/etc/xattr.conf",
};

// Where else programs look for the bundle.
constexpr const char* kCaBundleLinks[] = {
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
};

constexpr const char* kSystemRoots[] = {
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
};

bool is_link_into_usr(const fs::path& path, std::string& target) {
  std::error_code error;
  const fs::path text = fs::read_symlink(path, error);
  if (error) return false;
  target = text.string();
  const fs::path whole = (text.is_absolute() ? text : path.parent_path() / text).lexically_normal();
  return whole.string().starts_with("/usr/");
}

// A link into /usr stays a link (programs read the time zone's name from /etc/localtime); the rest is bound.
void add_host_path(Profile& profile, const char* path) {
  std::error_code error;
  if (!fs::exists(path, error)) return;
  std::string target;
  if (is_link_into_usr(path, target)) {
    profile.links.push_back({target, path});
  } else {
    profile.read_only.push_back({path});
  }
}

const char* shell() {
  return ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

// Every spelling of a URL under `prefix` (ProfileInput::git_prefixes), its https form included: git takes
// the longest match, of equally long ones the first it has read, and this file is read before a
// repository's own, so that the same rewrite in there ("insteadOf = https://HOST/" for ssh) changes nothing.
std::string git_rewrites(const std::string& prefix) {
  const std::size_t slash = prefix.find('/');
  const std::string host = prefix.substr(0, slash);
  const std::string path = prefix.substr(slash + 1);
  std::string text = fmt::format("[url \"https://{}\"]\n", prefix);
  for (const std::string& form :
       {"git@" + host + ":" + path, "git@" + host + ":/" + path, "ssh://git@" + host + "/" + path,
        "ssh://git@" + host + ":22/" + path, "git://" + host + "/" + path, "git://" + host + ":9418/" + path,
        "https://" + host + "/" + path}) {
    text += fmt::format("\tinsteadOf = {0}\n\tpushInsteadOf = {0}\n", form);
  }
  return text;
}

// What a repository may override. What it may not stands in the environment (make_environment).
std::string git_configuration(const ProfileInput& input) {
  std::string text =
      "# A sandbox's .git/config may be read-only: do not try to write tracking branches there.\n"
      "[branch]\n\tautoSetupMerge = false\n";
  // Without the proxy: git shows what a server says, and not what a proxy says to a CONNECT.
  text += fmt::format("[http]\n\tsslCAInfo = {}\n\tproxy =\n", kCaBundlePath);
  const std::string name = git_quoted(input.git.name);
  const std::string email = git_quoted(input.git.email);
  if (!input.git.name.empty() && !name.empty()) text += "[user]\n\tname = " + name + "\n";
  if (!input.git.email.empty() && !email.empty()) text += "[user]\n\temail = " + email + "\n";
  for (const std::string& folder : input.safe_folders) {
    const std::string quoted = git_quoted(folder);
    if (!quoted.empty()) text += "[safe]\n\tdirectory = " + quoted + "\n";
  }
  for (const std::string& prefix : input.git_prefixes) text += git_rewrites(prefix);
  return text;
}

// With its own name: a program that asks for that need not ask the gateway.
std::string hosts_file(std::string_view hostname) {
  return fmt::format("127.0.0.1 localhost {}\n::1 localhost ip6-localhost ip6-loopback\n", hostname);
}

std::string resolver_file() {
  return fmt::format("nameserver {}\n", os::kSandboxAddress);
}

std::vector<GeneratedFile> our_files(const ProfileInput& input) {
  std::string bundle = input.system_roots_pem;
  if (!bundle.empty() && bundle.back() != '\n') bundle += '\n';
  bundle += input.session_ca_pem;
  std::vector<GeneratedFile> files;
  files.push_back({"/etc/gitconfig", git_configuration(input)});
  files.push_back({kJavaTrustPath, java_trust_store(bundle)});
  files.push_back({kCaBundlePath, std::move(bundle)});
  files.push_back({kSessionCaPath, input.session_ca_pem});
  return files;
}

void add_generated_files(Profile& profile, const ProfileInput& input) {
  const auto add = [&](const char* path, std::string content) {
    profile.files.push_back({path, std::move(content)});
  };
  add("/etc/passwd", fmt::format("root:x:0:0:root:/root:/usr/sbin/nologin\n{0}:x:{1}:{2}:{0}:{3}:{4}\n"
                                 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                                 input.user_name, input.ids.uid, input.ids.gid, input.home, shell()));
  add("/etc/group", fmt::format("root:x:0:\n{}:x:{}:\nnogroup:x:65534:\n", input.user_name, input.ids.gid));
  add("/etc/hostname", fmt::format("{}\n", kHostname));
  add("/etc/hosts", hosts_file(kHostname));
  add("/etc/resolv.conf", resolver_file());
  add("/etc/nsswitch.conf",
      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\n"
      "services: files\nethers: files\nrpc: files\n");
  std::ranges::move(our_files(input), std::back_inserter(profile.files));
}

}  // namespace

Profile make_profile(const ProfileInput& input) {
  Profile profile;
  profile.read_only.push_back({"/usr"});
  for (const char* folder : kSystemFolders) add_host_path(profile, folder);
  for (const char* path : kEtc) add_host_path(profile, path);
  add_generated_files(profile, input);
  for (const char* path : kCaBundleLinks) profile.links.push_back({kCaBundlePath, path});
  for (const char* path : {kSshPath, kGitProxyPath}) profile.links.push_back({kInitPath, path});
  profile.private_folders = private_folders(input.home);
  return profile;
}

std::vector<GeneratedFile> files_over_image(const ProfileInput& input, std::string_view hostname) {
  std::vector<GeneratedFile> files = our_files(input);
  std::string bundle;
  for (const GeneratedFile& file : files) {
    if (file.path == kCaBundlePath) bundle = file.content;
  }
  // In an image these may be files of their own.
  for (const char* path : kCaBundleLinks) files.push_back({path, bundle});
  files.push_back({"/etc/hosts", hosts_file(hostname)});
  files.push_back({"/etc/resolv.conf", resolver_file()});
  return files;
}

std::vector<std::string> private_folders(const std::string& home) {
  std::vector<std::string> folders = {"/tmp", "/var/tmp", "/run"};
  // A home such as "/" or "/usr/x" (service users) is not shadowed: HOME names it, and it is just not there.
  if (home != "/" && !home.starts_with("/usr/") && !home.starts_with("/etc/")) folders.push_back(home);
  return folders;
}

Result<std::string> read_system_roots() {
  for (const char* path : kSystemRoots) {
    std::ifstream file(path, std::ios::binary);
    if (!file) continue;
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().contains("-----BEGIN CERTIFICATE-----")) return text.str();
  }
  return fail(Reason::Internal,
              "the system's CA certificates are not there; install the package ca-certificates");
}

}  // namespace sallyport::sandbox
