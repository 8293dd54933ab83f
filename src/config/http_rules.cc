#include "config/http_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "config/shared_hosts.h"
#include "config/table_reader.h"
#include "config/units.h"
#include "policy/similar.h"

namespace sallyport::config {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kHostRemedy = "add host = \"registry.example.com\"";
constexpr std::string_view kNameRemedy =
    "write the name alone, as in \"registry.example.com\", or \"*.cdn.example.com\" for all below a name";

// One rule that is being read.
struct Reader {
  TableReader& table;
  const std::string& what;  // "[[allow]]"
  Problems& problems;

  void problem(const Place& place, std::string message, std::string remedy) const {
    problems.push_back({place, std::move(message), std::move(remedy)});
  }
};

// What a key may hold: the words for messages, and the limits.
struct ListKey {
  std::string_view key;
  Kind kind;
  std::size_t max;
  std::string_view example;   // "ports = [443]"
  std::string_view if_empty;  // what leaving the key out means
};

constexpr ListKey kHosts{"host", Kind::String, policy::kMaxRuleHosts, R"(host = ["a.example", "b.example"])",
                         "name a host"};
constexpr ListKey kPorts{"ports", Kind::Integer, policy::kMaxRulePorts, "ports = [443]",
                         "leave the key out for the default"};
constexpr ListKey kMethods{"methods", Kind::String, static_cast<std::size_t>(policy::kLastMethod) + 1,
                           R"(methods = ["GET", "POST"])", "leave the key out for the default"};
constexpr ListKey kPaths{"paths", Kind::String, policy::kMaxRulePaths, R"(paths = ["/v1/**"])",
                         "leave the key out for every path"};

// The items of `list` that have the right kind. An empty list says nothing, and must not mean everything.
std::vector<const Value*> items_of(const Reader& reader, const ListKey& key, const Value& list) {
  if (list.items.empty()) {
    reader.problem(list.place, fmt::format("'{}' is an empty list", key.key), std::string(key.if_empty));
  }
  if (list.items.size() > key.max) {
    reader.problem(list.items[key.max].place, fmt::format("'{}' has more than {} entries", key.key, key.max),
                   "make two rules of it");
    return {};
  }
  std::vector<const Value*> items;
  for (const Value& item : list.items) {
    if (item.kind == key.kind) {
      items.push_back(&item);
    } else {
      reader.problem(item.place,
                     fmt::format("each of '{}' must be {}, not {}", key.key, name(key.kind), name(item.kind)),
                     "write " + std::string(key.example));
    }
  }
  return items;
}

std::vector<const Value*> read_list(const Reader& reader, const ListKey& key) {
  const Value* value = reader.table.find(key.key);
  if (value == nullptr) return {};
  if (value->kind == Kind::Array) return items_of(reader, key, *value);
  reader.problem(value->place, fmt::format("'{}' must be an array, not {}", key.key, name(value->kind)),
                 "write " + std::string(key.example));
  return {};
}

// ---- hosts ----

// What to do about a host that is none. For a name that no rule may have there is nothing.
std::string host_remedy(std::string_view text, const Error& error, std::string_view otherwise) {
  if (error.reason == Reason::IpLiteral) {
    return "name the host; the operator's file can pin its name to an address";
  }
  if (text.starts_with("*.")) text.remove_prefix(2);
  return std::string(policy::HostName::parse(text) ? "" : otherwise);
}

void read_hosts(const Reader& reader, const Place& rule, std::vector<policy::HostPattern>& hosts,
                std::vector<Place>& places) {
  const Value* value = reader.table.find(kHosts.key);
  if (value == nullptr) {
    reader.problem(rule, reader.what + " has no 'host'", std::string(kHostRemedy));
    return;
  }
  std::vector<const Value*> items;
  if (value->kind == Kind::Array) {
    items = items_of(reader, kHosts, *value);
  } else if (value->kind == Kind::String) {
    items = {value};
  } else {
    reader.problem(value->place,
                   fmt::format("'host' must be a string or an array, not {}", name(value->kind)),
                   "write host = \"registry.example.com\"");
  }
  std::unordered_set<std::string> seen;
  for (const Value* item : items) {
    Result<policy::HostPattern> host = policy::HostPattern::parse(item->text);
    if (!host) {
      reader.problem(item->place, "host: " + host.error().detail,
                     host_remedy(item->text, host.error(), kNameRemedy));
    } else if (!seen.insert(host->str()).second) {
      reader.problem(item->place, "'" + host->str() + "' is listed twice", "remove one");
    } else {
      hosts.push_back(*std::move(host));
      places.push_back(item->place);
    }
  }
}

bool read_flag(const Reader& reader, std::string_view key) {
  const Value* value = reader.table.find(key, Kind::Boolean);
  return value != nullptr && value->boolean;
}

void refuse_wide_hosts(const Reader& reader, const Written<policy::AllowRule>& written) {
  const bool wide = read_flag(reader, "unsafe_public_suffix");
  const bool doh = read_flag(reader, "unsafe_doh");
  for (std::size_t i = 0; i < written.rule.hosts.size(); ++i) {
    const policy::HostPattern& host = written.rule.hosts[i];
    const Place& place = written.host_places[i];
    if (!wide && is_shared(host)) {
      reader.problem(place,
                     "anybody can get a name that '" + host.str() + "' matches: '" + host.base().str() +
                         "' is, or is above, a public suffix",
                     "name the hosts that are needed, or add unsafe_public_suffix = true");
    }
    if (const std::string_view resolver = doh_host(host); !doh && !resolver.empty()) {
      reader.problem(place,
                     "'" + host.str() + "' lets names be looked up past the policy: " +
                         std::string(resolver) + " answers DNS over HTTPS",
                     "remove it, or add unsafe_doh = true");
    }
  }
}

// ---- what else a rule says ----

std::optional<std::uint16_t> port_of(const Reader& reader, const Value& value) {
  if (value.integer >= 1 && value.integer <= UINT16_MAX) return static_cast<std::uint16_t>(value.integer);
  reader.problem(value.place, std::to_string(value.integer) + " is no port", "a port is 1 to 65535");
  return std::nullopt;
}

enum class Effect : std::uint8_t { Opens, Closes };

std::optional<std::uint16_t> read_port(const Reader& reader, const Value& value, Effect effect) {
  const auto port = port_of(reader, value);
  if (!port || effect == Effect::Closes || !policy::is_dns_port(*port)) return port;
  reader.problem(
      value.place,
      "port " + std::to_string(*port) + " is DNS, which the gateway answers itself, for allowed names",
      "remove it: no rule opens that port");
  return std::nullopt;
}

std::vector<std::uint16_t> read_ports(const Reader& reader, Effect effect) {
  std::vector<std::uint16_t> ports;
  for (const Value* item : read_list(reader, kPorts)) {
    const auto port = read_port(reader, *item, effect);
    if (!port) continue;
    if (std::ranges::find(ports, *port) != ports.end()) {
      reader.problem(item->place, "port " + std::to_string(*port) + " is listed twice", "remove one");
    } else {
      ports.push_back(*port);
    }
  }
  return ports;
}

void report_method(const Reader& reader, const Value& item) {
  std::string upper = item.text;
  for (char& c : upper) c = is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
  const auto meant = policy::method_from_name(upper);
  reader.problem(item.place, "a method cannot be " + shown(item.text),
                 meant ? fmt::format("did you mean \"{}\"?", policy::name(*meant))
                       : "write some of " + policy::Methods::all().str() + R"(, or ["*"] for all)");
}

std::optional<policy::Methods> read_methods(const Reader& reader) {
  const auto items = read_list(reader, kMethods);
  if (items.empty()) return std::nullopt;
  policy::Methods methods;
  for (const Value* item : items) {
    if (item->text == "*") {
      if (items.size() > 1) reader.problem(item->place, "\"*\" stands for every method", "write it alone");
      methods = policy::Methods::all();
      continue;
    }
    const auto method = policy::method_from_name(item->text);
    if (!method) {
      report_method(reader, *item);
    } else if (methods.contains(*method) && items.front()->text != "*") {
      reader.problem(item->place, "the method " + item->text + " is listed twice", "remove one");
    } else {
      methods.add(*method);
    }
  }
  return methods;
}

std::vector<policy::PathPattern> read_paths(const Reader& reader) {
  std::vector<policy::PathPattern> paths;
  std::unordered_set<std::string> seen;
  for (const Value* item : read_list(reader, kPaths)) {
    Result<policy::PathPattern> path = policy::PathPattern::parse(item->text);
    if (!path) {
      reader.problem(item->place, "paths: " + path.error().detail,
                     R"(write it as in "/v1/models/*", or "/files/**" for all below)");
    } else if (!seen.insert(path->str()).second) {
      reader.problem(item->place, "this path is listed twice", "remove one");
    } else if (const auto path_of_git = policy::HttpPath::parse(item->text);
               path_of_git && path_of_git->is_git()) {
      reader.problem(item->place, "this path is git's, which [[git]] rules alone judge", "remove it");
    } else {
      paths.push_back(*std::move(path));
    }
  }
  return paths;
}

void read_max_body(const Reader& reader, policy::AllowRule& rule) {
  const Value* value = reader.table.find("max_body", Kind::String);
  if (value == nullptr) return;
  if (const auto size = parse_size(value->text)) {
    rule.max_body = *size;
    return;
  }
  reader.problem(value->place, "max_body cannot be " + shown(value->text),
                 R"(write a whole number with B, KiB, MiB or GiB, like "10MiB", or "unlimited")");
}

void read_tls(const Reader& reader, policy::AllowRule& rule) {
  const Value* value = reader.table.find("tls", Kind::String);
  if (value == nullptr) return;
  if (value->text == name(policy::TlsMode::Splice)) {
    rule.tls = policy::TlsMode::Splice;
  } else if (value->text != name(policy::TlsMode::Inspect)) {
    reader.problem(value->place, "tls cannot be " + shown(value->text),
                   "write \"inspect\", or \"splice\" to pass connections on unread");
  }
}

void read_scheme(const Reader& reader, policy::AllowRule& rule) {
  const Value* value = reader.table.find("scheme", Kind::String);
  if (value == nullptr) return;
  for (const policy::Scheme scheme : {policy::Scheme::Https, policy::Scheme::Http}) {
    if (value->text == name(scheme)) rule.scheme = scheme;
  }
  if (!rule.scheme) {
    reader.problem(value->place, "scheme cannot be " + shown(value->text),
                   R"(write "https", or "http" for HTTP in the clear)");
  }
}

// Nothing of a spliced connection but its host and port is seen.
void check_splice(const Reader& reader, const Place& place, policy::AllowRule& rule) {
  if (rule.tls != policy::TlsMode::Splice) return;
  for (const std::string_view key : {"methods", "paths", "max_body", "websocket", "encoded_slash"}) {
    if (const Value* value = reader.table.find(key)) {
      reader.problem(value->place, fmt::format("'{}' cannot be held to where tls = \"splice\"", key),
                     "remove it, or write tls = \"inspect\"");
    }
  }
  const auto in_clear = [&](std::uint16_t port) { return rule.scheme_at(port) == policy::Scheme::Http; };
  if (const auto port = std::ranges::find_if(rule.ports, in_clear); port != rule.ports.end()) {
    reader.problem(place, fmt::format("port {} has no TLS that could be spliced", *port),
                   "give it a rule of its own");
  }
  rule.methods = policy::Methods::all();
  rule.max_body = UINT64_MAX;
  rule.websocket = true;
  rule.encoded_slash = true;
}

void finish(const Reader& reader) {
  reader.table.refuse("version", "below " + reader.what + " this key belongs to the rule",
                      "move it above the first table");
  reader.table.refuse("credential", "only a [[git]] rule has a credential", "remove it");
  reader.table.finish();
}

}  // namespace

void read_allow(const Value& table, const std::string& file, PolicyFile& policy, Problems& problems) {
  const std::string what = "[[allow]]";
  TableReader keys(table, what, problems);
  const Reader reader{keys, what, problems};
  Written<policy::AllowRule> written{.place = table.place};
  policy::AllowRule& rule = written.rule;
  rule.source = {file, table.place.line};
  keys.refuse_for_now("bundle");
  read_hosts(reader, table.place, rule.hosts, written.host_places);
  if (auto ports = read_ports(reader, Effect::Opens); !ports.empty()) rule.ports = std::move(ports);
  if (const auto methods = read_methods(reader)) rule.methods = *methods;
  rule.paths = read_paths(reader);
  read_max_body(reader, rule);
  read_tls(reader, rule);
  read_scheme(reader, rule);
  if (rule.scheme == policy::Scheme::Http && keys.find("ports") == nullptr) rule.ports = {policy::kHttpPort};
  rule.websocket = read_flag(reader, "websocket");
  rule.encoded_slash = read_flag(reader, "encoded_slash");
  check_splice(reader, table.place, rule);
  if (rule.websocket && !rule.methods.contains(policy::Method::Get)) {
    reader.problem(table.place, "a WebSocket begins with a GET, which this rule does not allow",
                   "add \"GET\" to methods");
  }
  refuse_wide_hosts(reader, written);
  finish(reader);
  if (!rule.hosts.empty()) policy.allow.push_back(std::move(written));
}

void read_deny(const Value& table, const std::string& file, PolicyFile& policy, Problems& problems) {
  const std::string what = "[[deny]]";
  TableReader keys(table, what, problems);
  const Reader reader{keys, what, problems};
  Written<policy::DenyRule> written{.place = table.place};
  written.rule.source = {file, table.place.line};
  read_hosts(reader, table.place, written.rule.hosts, written.host_places);
  written.rule.ports = read_ports(reader, Effect::Closes);
  if (const auto methods = read_methods(reader)) written.rule.methods = *methods;
  written.rule.paths = read_paths(reader);
  finish(reader);
  if (!written.rule.hosts.empty()) policy.deny.push_back(std::move(written));
}

void read_tcp(const Value& table, const std::string& file, PolicyFile& policy, Problems& problems) {
  const std::string what = "[[tcp]]";
  TableReader keys(table, what, problems);
  const Reader reader{keys, what, problems};
  std::vector<policy::HostPattern> hosts;
  std::vector<Place> places;
  read_hosts(reader, table.place, hosts, places);
  const Value* port = keys.require("port", Kind::Integer, "add port = 5432");
  const bool doh = read_flag(reader, "unsafe_doh");
  finish(reader);
  const auto number = port != nullptr ? read_port(reader, *port, Effect::Opens) : std::nullopt;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].is_wildcard()) {
      reader.problem(places[i], "host: a [[tcp]] rule names its hosts, without wildcards",
                     "write the name alone, as in \"db.example.com\"");
    } else if (!doh && !doh_host(hosts[i]).empty()) {
      reader.problem(
          places[i],
          "'" + hosts[i].str() + "' lets names be looked up past the policy: it answers DNS itself",
          "remove it, or add unsafe_doh = true");
    } else if (number) {
      policy.tcp.push_back({{hosts[i].base(), *number, {file, table.place.line}}, table.place, {places[i]}});
    }
  }
}

}  // namespace sallyport::config
