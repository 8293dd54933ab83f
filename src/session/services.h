// One session's part of the gate and of the vault: opened there, told what it needs, connected with each
// other, opened again when they die. What they have to say for the audit log goes to the journal.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "os/netns.h"
#include "session/credentials.h"
#include "session/gateway.h"
#include "session/grant_change.h"
#include "session/journal.h"
#include "session/service_channel.h"
#include "wire/messages.h"

namespace sallyport::session {

// Doors on the host, as the gate is told of them.
struct HostDoors {
  wire::GateHostDoors message;
  std::vector<Fd> fds;
};

class Services {
 public:
  struct Setup {
    std::string session;
    std::string encoded_grant;
    std::string ca_certificate_pem;
    std::string ca_key_pem;
    std::map<std::string, config::CredentialSource> credentials;
    uid_t credentials_owner;
    std::uint64_t max_uses = UINT64_MAX;  // requests that get a credential, by whichever vault
  };
  struct Callbacks {
    // Every credential was read by the vault, once after open_for_use().
    std::function<void()> on_usable;
    // After use(): what the gate says from now on was judged by the new grant.
    std::function<void()> on_grant_in_force;
    // And then: the vault has read its credentials, as far as they are good.
    std::function<void()> on_grant_usable;
    // Something the user should know: a process was restarted, a credential cannot be read any more.
    std::function<void(std::string)> on_notice;
    // The session cannot go on.
    std::function<void(Error)> on_failure;
  };

  // The gateway was started, and outlives this, as does the journal.
  Services(os::EventLoop& loop, Gateway& gateway, Journal& journal, Setup setup, Callbacks callbacks);

  void start();
  // The gate serves these from now on, and so does every gate that replaces it.
  void open_doors(os::Doors doors);
  void open_doors(HostDoors doors);
  // Likewise.
  void open_packet_log(Fd packet_log);
  void set_probe(wire::GateProbe probe);
  // After the pre-flight: hands the credentials to the vault, and connects gate and vault.
  Status open_for_use();
  // Nothing passes any more. Calls back when what gate and vault still had to say is in the journal.
  void stop(std::function<void()> on_stopped);

  // Another grant in the place of the one before; not while one is on its way. `encoded_grant` and
  // `credentials` as in Setup. An error, and nothing has changed, when a credential cannot be opened.
  // Otherwise the one before allows nothing new from the moment on that the gate says so, and what went by it
  // in the vault is gone already.
  struct NewGrant {
    std::string encoded_grant;
    std::map<std::string, config::CredentialSource> credentials;
    GrantChange change;
  };
  Status use(NewGrant next);

 private:
  std::unique_ptr<Credentials> make_credentials(std::map<std::string, config::CredentialSource> sources);
  void switch_vault();
  void switch_gate();
  void give_gate_the_grant();
  void on_gate_has_the_grant();
  void tell_grant_usable();
  void greet_gate();
  void greet_vault();
  void on_gate_packet(const os::Packet& packet);
  void record_for_gate(const wire::AuditAppend& append);
  void on_vault_packet(const os::Packet& packet);
  void on_credential_file(const std::string& name, Fd file, const std::string& problem);
  void on_credential_loaded(const wire::CredentialLoaded& loaded);
  void connect();
  void send_doors();
  void send_host_doors();
  void send_packet_log();
  Result<Fd> grant_file() const;
  void on_death(const std::string& how, std::string_view lost);
  void give_up(Error error);

  Journal& journal_;
  Setup setup_;
  Callbacks callbacks_;
  std::optional<os::Doors> doors_;
  std::optional<HostDoors> host_doors_;
  std::optional<Fd> packet_log_;
  std::optional<wire::GateProbe> probe_;
  bool in_use_ = false;
  bool usable_ = false;
  std::optional<NewGrant> next_;  // since use(), until the gate is told
  std::unique_ptr<Credentials> next_credentials_;
  // Since use(), until on_grant_usable.
  enum class Switch : std::uint8_t { Done, Gate, Vault };
  Switch awaited_ = Switch::Done;
  bool vault_taken_away_ = false;       // by use(), until the gate knows
  bool grant_came_with_start_ = false;  // the gate's: it says Ready for it
  std::set<std::string> awaited_credentials_;
  std::set<std::string> unopened_credentials_;  // the user was told why; the vault only repeats it
  os::FileWatcher& file_watcher_;
  std::unique_ptr<Credentials> credentials_;
  ServiceChannel gate_;
  ServiceChannel vault_;
};

}  // namespace sallyport::session
