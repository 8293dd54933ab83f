#include "sandbox/git_secret.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sandbox/token_shape.h"

namespace sallyport::sandbox {
namespace {

constexpr std::string_view kHidden = "***";
constexpr std::size_t kMaxShownBytes = 200;

// Of a variable's name, whoever may have invented it (github.token, sendemail.smtpPass, hub.oauthtoken).
constexpr std::string_view kSecretNames[] = {"password", "passwd",     "token",    "secret",
                                             "apikey",   "privatekey", "accesskey"};
// Of those the ones that are known to hold something else: yes or no, a URL, a program.
constexpr std::string_view kHarmlessEnds[] = {"passwordprotected", "endpoint", "askpass"};
// In a value: headers that carry a credential, and what a helper says to git.
constexpr std::string_view kSecretWords[] = {
    "authorization:", "private-token:", "job-token:", "cookie:", "password=", "sshpass"};

bool contains_word(std::string_view text, std::string_view word) {
  return lowered(text).contains(word);
}
bool holds_secret_word(std::string_view text) {
  return std::ranges::any_of(kSecretWords, [&](std::string_view word) { return contains_word(text, word); });
}

bool is_url_end(char c) {
  return is_visible(c) ? std::string_view("\"'`<>").contains(c) : static_cast<unsigned char>(c) < 0x80;
}

// One URL in a text: the scheme, and what follows "://" up to its end.
struct Url {
  std::string_view scheme;
  std::string_view rest;
};

// From `at` on; `at` moves behind its "://".
std::optional<Url> next_url(std::string_view text, std::size_t& at) {
  constexpr std::string_view kMark = "://";
  const std::size_t mark = text.find(kMark, at);
  if (mark == std::string_view::npos) return std::nullopt;
  const auto is_scheme_char = [](char c) { return is_alnum(c) || c == '+' || c == '-' || c == '.'; };
  std::size_t begin = mark;
  while (begin > at && is_scheme_char(text[begin - 1])) --begin;
  at = mark + kMark.size();
  const std::string_view rest = text.substr(at);
  const auto end = std::ranges::find_if(rest, is_url_end);
  return Url{text.substr(begin, mark - begin), rest.substr(0, static_cast<std::size_t>(end - rest.begin()))};
}

bool is_ssh(std::string_view scheme) {
  return scheme == "ssh" || scheme == "git+ssh" || scheme == "ssh+git";
}

// The authority ends at the first of "/?#". A password may be written with a bare '/' in it, though: then
// what stands before it is "user:password", which is no port.
bool has_userinfo(const Url& url) {
  const std::string_view authority = url.rest.substr(0, url.rest.find_first_of("/?#"));
  const std::size_t at = authority.rfind('@');
  if (at != std::string_view::npos) {
    return !is_ssh(lowered(url.scheme)) || authority.substr(0, at).contains(':');
  }
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || authority.starts_with('[')) return false;
  const std::string_view port = authority.substr(colon + 1);
  return url.rest.contains('@') && !std::ranges::all_of(port, is_digit);
}

// The URL without userinfo, when nothing else of it can be part of a secret; else nothing of it.
std::string cleaned(const Url& url) {
  const std::size_t slash = std::min(url.rest.find('/'), url.rest.size());
  const std::string_view authority = url.rest.substr(0, slash);
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return "";
  const std::string_view host = authority.substr(at + 1);
  const std::string_view path = url.rest.substr(slash);
  const auto in_host = [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == ':'; };
  const auto in_path = [](char c) { return is_alnum(c) || std::string_view("._~/-").contains(c); };
  const bool plain = !host.empty() && std::ranges::all_of(host, in_host) &&
                     std::ranges::all_of(path, in_path) && std::ranges::all_of(url.scheme, is_alpha) &&
                     host.size() + path.size() <= kMaxShownBytes && !holds_token(path);
  return plain ? fmt::format("{}{}", host, path) : "";
}

std::optional<Url> url_with_userinfo(std::string_view text) {
  std::size_t at = 0;
  while (const auto url = next_url(text, at)) {
    if (has_userinfo(*url)) return url;
  }
  return std::nullopt;
}

std::string shown(std::string_view text) {
  const auto url = url_with_userinfo(text);
  if (!url) return std::string(kHidden);
  const std::string clean = cleaned(*url);
  return clean.empty() ? std::string(kHidden) : fmt::format("{}://{}@{}", url->scheme, kHidden, clean);
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return is_alnum(c) || std::string_view("._-/").contains(c); });
}

std::string shown_key(const GitConfigEntry& entry) {
  if (!entry.subsection) return entry.section + "." + entry.name;
  const bool secret = holds_userinfo(*entry.subsection) || holds_token(*entry.subsection);
  return fmt::format("{}.{}.{}", entry.section,
                     secret ? std::string(kHidden) : escaped(*entry.subsection, kMaxShownBytes), entry.name);
}

// Where a credential belongs to is not always said: then the words of a person.
std::string remedy_for(const GitConfigEntry& entry) {
  const bool is_remote = entry.section == "remote" && (entry.name == "url" || entry.name == "pushurl");
  const std::string value = entry.value.value_or("");
  const auto url = is_remote ? url_with_userinfo(value) : std::nullopt;
  const std::string clean = url ? cleaned(*url) : "";
  const std::string name = entry.subsection.value_or("");
  if (clean.empty() || name.empty() || name.starts_with('-') || !is_plain(name)) return "take that line out";
  return fmt::format("git remote set-url {}{} {}://{}", entry.name == "pushurl" ? "--push " : "", name,
                     url->scheme, clean);
}

bool is_secret_name(const GitConfigEntry& entry) {
  const std::string& name = entry.name;
  if (std::ranges::any_of(kHarmlessEnds, [&](std::string_view end) { return name.ends_with(end); })) {
    return false;
  }
  return name.ends_with("pass") ||
         std::ranges::any_of(kSecretNames, [&](std::string_view word) { return name.contains(word); });
}

bool is_secret_value(const GitConfigEntry& entry, std::string_view value) {
  if (holds_userinfo(value) || holds_token(value) || holds_secret_word(value)) return true;
  // All that it can say is removed by the gateway anyway.
  if (entry.section == "http" && entry.name == "extraheader") return true;
  // Also without a scheme: user:password@proxy:3128.
  if (entry.name == "proxy" && value.contains('@')) return true;
  return is_secret_name(entry);
}

}  // namespace

bool holds_userinfo(std::string_view text) {
  return url_with_userinfo(text).has_value();
}

std::optional<std::string> without_userinfo(std::string_view url) {
  const auto found = url_with_userinfo(url);
  const std::string clean = found ? cleaned(*found) : "";
  if (clean.empty() || found->scheme.data() != url.data() ||
      found->rest.data() + found->rest.size() != url.data() + url.size()) {
    return std::nullopt;
  }
  return fmt::format("{}://{}", found->scheme, clean);
}

std::optional<GitSecret> secret_in(const GitConfigEntry& entry) {
  const std::string value = entry.value.value_or("");
  const bool in_value = !value.empty() && is_secret_value(entry, value);
  const std::string subsection = entry.subsection.value_or("");
  const bool in_key = holds_userinfo(subsection) || holds_token(subsection);
  if (!in_value && !in_key) return std::nullopt;
  std::string text = shown_key(entry);
  if (in_value) text += " = " + shown(value);
  return GitSecret{std::move(text), remedy_for(entry)};
}

std::optional<GitSecret> secret_in_line(std::string_view line) {
  if (!holds_userinfo(line) && !holds_token(line) && !contains_word(line, "authorization:")) {
    return std::nullopt;
  }
  return GitSecret{shown(line), "take that line out"};
}

std::optional<GitSecret> secret_in_log_line(std::string_view line) {
  const std::size_t tab = line.rfind('\t');
  const std::string_view message = tab == std::string_view::npos ? line : line.substr(tab + 1);
  constexpr std::string_view kWithUrl[] = {"clone: from ", "pull ", "fetch ", "branch ", "'", "tag ", "http"};
  const bool by_git =
      std::ranges::any_of(kWithUrl, [&](std::string_view begin) { return message.starts_with(begin); });
  if (!by_git || !holds_userinfo(message)) return std::nullopt;
  return GitSecret{shown(message), "delete that file: git does without its history of the past"};
}

std::optional<std::string> secret_file_of(const GitConfigEntry& entry) {
  constexpr std::string_view kFiles[] = {"cookiefile", "sslkey", "proxysslkey"};
  const std::string value = entry.value.value_or("");
  if (entry.section == "http" && std::ranges::find(kFiles, entry.name) != std::end(kFiles)) return value;
  if (entry.section != "credential" || entry.name != "helper") return std::nullopt;
  // "store --file PATH", "store --file=PATH", perhaps with the helper's own path before.
  constexpr std::string_view kOption = "--file";
  const std::size_t option = value.find(kOption);
  if (option == std::string::npos) return std::nullopt;
  std::string_view path = trimmed(std::string_view(value).substr(option + kOption.size()));
  if (path.starts_with('=')) path.remove_prefix(1);
  path = path.substr(0, path.find_first_of(" \t"));
  for (const char quote : {'"', '\''}) {
    if (path.size() > 1 && path.front() == quote && path.back() == quote)
      path = path.substr(1, path.size() - 2);
  }
  return std::string(path);
}

std::optional<std::string> included_file_of(const GitConfigEntry& entry) {
  const bool includes = entry.name == "path" && (entry.section == "include" || entry.section == "includeif");
  return includes ? entry.value : std::nullopt;
}

}  // namespace sallyport::sandbox
