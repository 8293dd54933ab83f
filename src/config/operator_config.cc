// The operator's file: where credentials lie, and what upstream hosts are.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/text.h"
#include "config/approvals.h"
#include "config/config.h"
#include "config/limits.h"
#include "config/reading.h"
#include "config/table_reader.h"
#include "config/text_file.h"
#include "config/toml_document.h"
#include "config/units.h"
#include "os/safe_path.h"
#include "policy/host_pattern.h"

namespace sallyport::config {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kSourceRemedy = "write source = { file = \"/path/to/the/token\" }";

// One reading of one file.
struct Reader {
  const std::string& home;
  OperatorConfig& config;
  Problems& problems;
};

// "/x" as it is, "~/x" under the home folder; anything else is a problem, and is not shown.
std::optional<std::string> read_path(const Reader& reader, const Value& value, const char* key) {
  const std::string& text = value.text;
  if (text.starts_with('/')) return text;
  if (text.starts_with("~/") && !reader.home.empty()) return reader.home + text.substr(1);
  const bool homeless = text.starts_with("~/");
  reader.problems.push_back({value.place,
                             homeless ? "HOME is not set, so '~/' stands for nothing"
                                      : std::string(key) + " is not an absolute path",
                             "begin it with '/'" + std::string(homeless ? "" : " or '~/'")});
  return std::nullopt;
}

void read_source(const Reader& reader, const std::string& name, const Value& table, const Place& place) {
  TableReader source(table, "source", reader.problems);
  source.refuse("env", "a credential cannot come from an environment variable",
                "environments leak into every child process, crash report and /proc: put it into a file of "
                "mode 0600 and "
                "name that as file");
  for (const std::string_view later : {"command", "systemd", "docker_secret"}) source.refuse_for_now(later);
  const Value* file = source.find("file", Kind::String);
  source.finish();
  if (table.entries.empty()) {
    reader.problems.push_back({table.place, "source has no 'file'", std::string(kSourceRemedy)});
  }
  if (file == nullptr) return;
  if (auto path = read_path(reader, *file, "file")) {
    reader.config.credentials[name] = CredentialSource{*std::move(path), place};
  }
}

// A name, or a uid; "" for what is neither. A name of digits alone is one that no tool reads as one.
std::string user_of(const Value& item) {
  if (item.kind == Kind::Integer) {
    return item.integer >= 0 && std::cmp_less(item.integer, UINT32_MAX) ? std::to_string(item.integer) : "";
  }
  if (item.kind != Kind::String || std::ranges::all_of(item.text, is_digit)) return "";
  return item.text;
}

std::vector<std::string> read_users(const Reader& reader, const Value& list) {
  std::vector<std::string> users;
  for (const Value& item : list.items) {
    users.push_back(user_of(item));
    if (!users.back().empty()) continue;
    reader.problems.push_back(
        {item.place, "a user is neither a name nor a uid", R"(write a list like ["alice", 1000])"});
  }
  return users;
}

void read_credential(const Reader& reader, const Entry& entry) {
  if (!is_credential_name(entry.key)) {
    reader.problems.push_back(bad_credential_name(entry.place));
    return;
  }
  const std::string what = "[credential." + entry.key + "]";
  if (entry.value.kind != Kind::Table) {
    reader.problems.push_back({entry.value.place,
                               what + " must be a table, not " + std::string(name(entry.value.kind)),
                               std::string(kSourceRemedy) + " below it; never write a token here"});
    return;
  }
  TableReader credential(entry.value, what, reader.problems);
  for (const std::string_view literal : {"token", "value", "secret", "password", "key"}) {
    credential.refuse(literal, "a credential's value must not stand in this file",
                      "put it into a file of its own of mode 0600 and " + std::string(kSourceRemedy));
  }
  const Value* source = credential.require("source", Kind::Table, kSourceRemedy);
  const Value* users = credential.find("users", Kind::Array);
  credential.finish();
  // Even one with problems is defined, so that what names it is not a problem as well.
  reader.config.credentials.try_emplace(entry.key, CredentialSource{"", entry.place});
  if (source != nullptr) read_source(reader, entry.key, *source, entry.place);
  if (users != nullptr) reader.config.credentials[entry.key].users = read_users(reader, *users);
}

std::optional<std::string> read_ca(const Reader& reader, const Value& value) {
  const auto path = read_path(reader, value, "ca");
  if (!path) return std::nullopt;
  auto file = read_text_file(*path, value.place, "ca: " + escaped(*path), kMaxFileBytes);
  if (!file) {
    reader.problems.push_back(std::move(file).error());
    return std::nullopt;
  }
  std::string& pem = file->text;
  const auto problem = [&](const char* message, const char* remedy) {
    reader.problems.push_back({value.place, "ca: " + escaped(*path) + " " + message, remedy});
    return std::nullopt;
  };
  if (pem.find("PRIVATE KEY-----") != std::string::npos) {
    return problem("holds a private key", "name a file that holds the CA's certificate alone");
  }
  const std::size_t begin = pem.find("-----BEGIN CERTIFICATE-----");
  if (begin == std::string::npos || pem.find("-----END CERTIFICATE-----", begin) == std::string::npos) {
    return problem("holds no certificate", "name a PEM file with the CA's certificate");
  }
  return std::move(pem);
}

void read_kind(const Reader& reader, TableReader& table, policy::UpstreamHost& upstream) {
  const Value* value = table.find("kind", Kind::String);
  if (value == nullptr) return;
  if (const auto kind = policy::host_kind_from_name(value->text)) {
    upstream.kind = *kind;
    return;
  }
  reader.problems.push_back({value->place, "kind cannot be " + shown(value->text),
                             R"(write "github", "gitlab", "gitea", "bitbucket" or "generic")"});
}

void read_address(const Reader& reader, TableReader& table, policy::UpstreamHost& upstream) {
  const Value* value = table.find("address", Kind::String);
  if (value == nullptr) return;
  upstream.address = policy::parse_pinned_address(value->text);
  if (!upstream.address) {
    reader.problems.push_back({value->place, "address is not an IP address",
                               R"(write "192.0.2.7", "192.0.2.7:8443" or "[2001:db8::7]:8443")"});
  }
}

// [host.git.corp.example] without quotes makes tables in tables: the name as it was meant.
std::optional<std::string> unquoted_name(const Entry& entry) {
  std::string name = entry.key;
  const Value* value = &entry.value;
  while (value->kind == Kind::Table && value->entries.size() == 1 &&
         value->entries.front().value.kind == Kind::Table) {
    name += "." + value->entries.front().key;
    value = &value->entries.front().value;
  }
  if (name == entry.key || !policy::HostName::parse(name)) return std::nullopt;
  return name;
}

std::optional<policy::HostPattern> read_host_pattern(const Reader& reader, const Entry& entry) {
  Result<policy::HostPattern> host = policy::HostPattern::parse(entry.key);
  const auto problem = [&](std::string message, std::string remedy) {
    reader.problems.push_back({entry.place, std::move(message), std::move(remedy)});
    return std::nullopt;
  };
  if (!host) {
    if (const auto meant = unquoted_name(entry)) {
      return problem("a host's name has dots and so stands in quotes", "write [host.\"" + *meant + "\"]");
    }
    return problem("[host.NAME]: " + host.error().detail,
                   "write the name that URLs have, without a port, or \"*.NAME\" for every host below it");
  }
  const bool twice = host->is_wildcard() ? reader.config.hosts_below.contains(host->base())
                                         : reader.config.hosts.contains(host->base());
  if (twice) return problem("'" + host->str() + "' is described twice", "remove one");
  return *std::move(host);
}

std::string read_host_credential(const Reader& reader, TableReader& table) {
  const Value* credential = table.find("credential", Kind::String);
  if (credential == nullptr) return "";
  if (!is_credential_name(credential->text)) {
    reader.problems.push_back(bad_credential_name(credential->place));
  } else if (!reader.config.credentials.contains(credential->text)) {
    reader.problems.push_back({credential->place, "no credential is named '" + credential->text + "'",
                               "add [credential." + credential->text + "] to this file"});
  }
  return credential->text;
}

void read_host(const Reader& reader, const Entry& entry) {
  const auto host = read_host_pattern(reader, entry);
  if (!host) return;
  const std::string what = "[host.\"" + host->str() + "\"]";
  if (entry.value.kind != Kind::Table) {
    reader.problems.push_back(
        {entry.value.place, what + " must be a table, not " + std::string(name(entry.value.kind)), ""});
    return;
  }
  TableReader table(entry.value, what, reader.problems);
  policy::UpstreamHost upstream;
  read_address(reader, table, upstream);
  if (const Value* allow = table.find("allow_private", Kind::Boolean)) {
    upstream.allow_private = allow->boolean;
  }
  if (const Value* ca = table.find("ca", Kind::String)) {
    upstream.ca_pem = read_ca(reader, *ca).value_or("");
  }
  if (host->is_wildcard()) {
    for (const std::string_view own : {"kind", "credential"}) {
      table.refuse(own, "'" + std::string(own) + "' is said of one host, not of all below a name",
                   "describe each of these hosts in a table of its own");
    }
    reader.config.hosts_below.emplace(host->base(), std::move(upstream));
  } else {
    upstream.kind = policy::well_known_kind(host->base());
    read_kind(reader, table, upstream);
    const std::string credential = read_host_credential(reader, table);
    reader.config.hosts.emplace(host->base(), HostEntry{std::move(upstream), credential, entry.place});
  }
  table.finish();
}

void read_timeouts(const Reader& reader, const Value& table) {
  TableReader timeouts(table, "[timeouts]", reader.problems);
  policy::Timeouts& result = reader.config.timeouts;
  const auto read = [&](const char* key, std::chrono::milliseconds& into) {
    const Value* value = timeouts.find(key, Kind::String);
    if (value == nullptr) return;
    if (const auto timeout = parse_time(value->text, policy::kMaxTimeout)) {
      into = *timeout;
      return;
    }
    reader.problems.push_back({value->place, std::string(key) + " cannot be " + shown(value->text),
                               R"(write a whole number and its unit, from "1ms" to "1440min", like "10s")"});
  };
  read("connect", result.connect);
  read("tls", result.tls);
  read("request_head", result.request_head);
  read("first_byte", result.first_byte);
  read("idle", result.idle);
  timeouts.finish();
}

void read_resolvers(const Reader& reader, const Value& list) {
  const char* remedy = R"(write a list like ["192.0.2.53", "192.0.2.53:5353", "[2001:db8::53]:53"])";
  if (list.items.empty()) {
    reader.problems.push_back({list.place, "resolvers names no name server", remedy});
  }
  for (const Value& item : list.items) {
    const auto address = item.kind == Kind::String ? policy::parse_pinned_address(item.text) : std::nullopt;
    if (!address) {
      reader.problems.push_back({item.place, "a resolver is not an IP address", remedy});
    } else if (reader.config.resolvers.size() == policy::kMaxResolvers) {
      reader.problems.push_back(
          {item.place, "the file has more than " + std::to_string(policy::kMaxResolvers) + " resolvers",
           "remove some: each is asked only when those before it fail"});
      return;
    } else {
      reader.config.resolvers.push_back(*address);
    }
  }
}

}  // namespace

std::string home_folder() {
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? home : "";
}

std::expected<OperatorConfig, Problems> parse_operator_config(std::string_view text, const std::string& file,
                                                              const std::string& home) {
  const std::expected<Value, Problem> document = parse_toml(text, file, kMaxFileBytes);
  if (!document) return std::unexpected(Problems{document.error()});

  OperatorConfig config;
  Problems problems;
  const Reader reader{home, config, problems};
  TableReader root(*document, "the operator's file", problems);
  check_version(root, problems);
  // Credentials first, wherever they stand: hosts name them.
  if (const Value* credentials = root.find("credential", Kind::Table)) {
    for (const Entry& entry : credentials->entries) read_credential(reader, entry);
  }
  if (const Value* hosts = root.find("host", Kind::Table)) {
    if (hosts->entries.size() > kMaxHosts) {
      problems.push_back({hosts->entries[kMaxHosts].place,
                          "the file describes more than " + std::to_string(kMaxHosts) + " hosts",
                          "describe all hosts below a name in one table"});
    } else {
      for (const Entry& entry : hosts->entries) read_host(reader, entry);
    }
  }
  if (const Value* approvals = find_list(root, *document, "approve", "an approval", problems)) {
    read_approvals(*approvals, config, problems);
  }
  if (const Value* timeouts = root.find("timeouts", Kind::Table)) read_timeouts(reader, *timeouts);
  if (const Value* resolvers = root.find("resolvers", Kind::Array)) read_resolvers(reader, *resolvers);
  if (const Value* limits = root.find("limits", Kind::Table)) read_limits(*limits, config.limits, problems);
  root.refuse_for_now("ceiling");
  for (const std::string_view rule : {"git", "allow", "deny", "api", "tcp"}) {
    root.refuse(rule, "rules do not stand in the operator's file", "move this table to the policy file");
  }
  root.finish();
  if (!problems.empty()) {
    sort_by_place(problems);
    return std::unexpected(std::move(problems));
  }
  return config;
}

std::expected<OperatorConfig, Problems> load_operator_config(const std::string& path) {
  const auto problem = [&](const Error& error) {
    // The place names the path already; "PATH is ...: chmod 600 PATH" names its remedy.
    const bool repeats = error.detail.starts_with(path + " ");
    return std::unexpected(Problems{Problem{
        {path}, repeats ? "the operator's file" + error.detail.substr(path.size()) : error.detail, ""}});
  };
  Result<Fd> fd = os::open_private_file(path, ::geteuid());
  if (!fd) return problem(fd.error());
  Result<std::string> text = os::read_whole(fd->get(), kMaxFileBytes);
  if (!text) return problem(text.error());
  return parse_operator_config(*text, path);
}

}  // namespace sallyport::config
