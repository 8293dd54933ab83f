#include "session/identity.h"

#include <pwd.h>

#include <array>

namespace sallyport::session {
namespace {

// Shown inside when the host knows no name or no usable home for the uid.
constexpr char kFallbackUser[] = "sandbox";
constexpr char kFallbackHome[] = "/home/sandbox";

struct Account {
  os::Ids ids;
  std::string name;
  std::string home;
};

template <class Lookup>
std::optional<Account> look_up(Lookup lookup) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16 * 1024> buffer;
  if (lookup(&entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return std::nullopt;
  return Account{{found->pw_uid, found->pw_gid}, found->pw_name, found->pw_dir};
}

std::optional<Account> account_of(uid_t uid) {
  return look_up([uid](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwuid_r(uid, entry, buffer, size, found);
  });
}

os::Ids service_ids(const char* user, uid_t fallback) {
  const auto account = look_up([user](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return ::getpwnam_r(user, entry, buffer, size, found);
  });
  return account && account->ids.uid != 0 ? account->ids : os::Ids{fallback, fallback};
}

bool usable_home(const std::string& home) {
  return home.size() > 1 && home.front() == '/' && home != "/nonexistent" && home != "/root";
}

// The name, and the home where it is not known.
void name_sandbox(Identities& identities) {
  const auto account = account_of(identities.sandbox.uid);
  identities.user_name = account ? account->name : kFallbackUser;
  if (identities.home.empty() && account) identities.home = account->home;
  if (!usable_home(identities.home)) identities.home = kFallbackHome;
}

}  // namespace

Identities service_identities(const os::Ids& caller) {
  Identities result;
  if (caller.uid != 0) return result;
  result.become_gate = service_ids(kGateUser, kGateUid);
  result.become_vault = service_ids(kVaultUser, kVaultUid);
  return result;
}

Identities identities_for(const os::Ids& client) {
  Identities result = service_identities({});
  result.sandbox = client;
  result.become_sandbox = client;
  name_sandbox(result);
  return result;
}

std::string user_name(uid_t uid) {
  const auto account = account_of(uid);
  return account ? account->name : "";
}

Result<Identities> choose_identities(const os::Ids& caller, const os::Ids& workspace_owner,
                                     const std::string& caller_home) {
  Identities result = service_identities(caller);
  result.sandbox = caller;
  result.home = caller_home;
  if (caller.uid == 0) {
    if (workspace_owner.uid == 0) {
      return fail(
          Reason::Internal,
          "started as root, the sandbox runs as the workspace's owner, and this workspace belongs to root. "
          "Give it to an ordinary user (chown -R USER .), or start sallyport as that user");
    }
    result.sandbox = workspace_owner;
    result.become_sandbox = workspace_owner;
    result.home.clear();
  }
  name_sandbox(result);
  return result;
}

}  // namespace sallyport::session
