// What is inside every sandbox besides the workspace: which system folders, which files of /etc, which
// environment, which git settings. Nothing of the caller's gets in unless a list here names it
// (docs/sandbox.md holds the lists in words).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/process.h"

namespace sallyport::sandbox {

// Where things of ours are inside.
inline constexpr char kInitPath[] = "/run/sallyport/init";
inline constexpr char kControlPath[] =
    "/run/sallyport/control";  // the socket that init of a container came by
inline constexpr char kCaBundlePath[] = "/etc/ssl/certs/ca-certificates.crt";  // system roots and session CA
inline constexpr char kSessionCaPath[] = "/etc/ssl/certs/sallyport-session.pem";  // session CA alone
// The same for Java, where Debian's has it.
inline constexpr char kJavaTrustPath[] = "/etc/ssl/certs/java/cacerts";
inline constexpr char kHostname[] = "sandbox";

// Who commits, when the repository does not say; from the caller's own configuration, and nothing else of it.
struct GitIdentity {
  std::string name;
  std::string email;
};

struct ProfileInput {
  os::Ids ids;            // whom the sandbox runs as
  std::string user_name;  // LOGNAME inside; also of the one line in /etc/passwd
  std::string home;       // absolute; private and empty inside
  std::string system_roots_pem;
  std::string session_ca_pem;
  GitIdentity git;                        // empty fields are left out
  std::vector<std::string> safe_folders;  // folders of another owner where git shall work all the same
  // What follows "https://" in the URLs of granted repositories: "HOST/" for every host, and
  // "HOST/OWNER/NAME" (as far as a rule has no '*').
  std::vector<std::string> git_prefixes;
};

struct Bind {
  std::string path;  // the same outside and inside
};
struct Link {
  std::string target;
  std::string path;
};
struct GeneratedFile {
  std::string path;
  std::string content;
};

struct Profile {
  std::vector<Bind> read_only;  // of the host, those that exist
  std::vector<Link> links;      // /bin, /lib, the other places of the CA bundle, what stands in place of ssh
  std::vector<GeneratedFile> files;          // read-only
  std::vector<std::string> private_folders;  // empty, writable, gone with the sandbox
};

// Looks which of the listed host paths exist.
Profile make_profile(const ProfileInput& input);

// What an image gets of it: git's configuration, the authorities, and whom to ask for names.
std::vector<GeneratedFile> files_over_image(const ProfileInput& input, std::string_view hostname);
// Folders that are empty, writable, and gone with the sandbox.
std::vector<std::string> private_folders(const std::string& home);

// --env NAME or NAME=VALUE.
struct EnvironmentRequest {
  std::string name;
  std::optional<std::string> value;  // nullopt: the caller's own value
};
Result<EnvironmentRequest> parse_environment_request(std::string_view text);

struct Environment {
  std::vector<std::string> variables;  // NAME=VALUE, the whole of it
  std::vector<std::string> warnings;   // for the caller's eyes: what looks like a credential, what is not set
};

// `caller` is NAME=VALUE lines of the caller's environment, of which the short list is taken; `cwd` becomes
// PWD. Names that would undo the profile (CA, git settings, SSH_AUTH_SOCK, ...) are refused.
Result<Environment> make_environment(const ProfileInput& input, const std::vector<std::string>& caller,
                                     const std::vector<EnvironmentRequest>& requests, const std::string& cwd);

// Whether a variable of the caller's counts: it is taken over, or names what must not be mounted. Whoever
// keeps a caller's environment need not keep the others.
bool counts(std::string_view variable_name);

// For a command that is started in it later: `variables` with PWD, and with NAME=VALUE of each addition, of
// which the same names are refused.
Result<std::vector<std::string>> add_to_environment(const std::vector<std::string>& variables,
                                                    const std::vector<std::string>& additions,
                                                    const std::string& cwd);

// Of an image's variables and of ours (make_environment): the image's PATH, SHELL and LANG unless one of
// `additions` names them, and whatever else ours do not name.
std::vector<std::string> environment_over_image(const std::vector<std::string>& image,
                                                const std::vector<std::string>& ours,
                                                const std::vector<std::string>& additions);

// The system's trusted roots in PEM, from where Debian, Fedora or Alpine keep them.
Result<std::string> read_system_roots();

// user.name and user.email of the configuration that lies in `home` (git is asked, as the caller); empty
// fields when there is none.
GitIdentity read_git_identity(const std::string& home);

}  // namespace sallyport::sandbox
