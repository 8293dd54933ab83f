#include "session/consent.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <vector>

#include "audit/mask.h"
#include "base/text.h"
#include "config/trust_store.h"
#include "session/line_diff.h"

namespace sallyport::session {
namespace {

// Every byte of a path may be escaped to four.
constexpr std::size_t kMaxPathBytes = std::size_t{4} * PATH_MAX;

std::string shown_path(const std::string& path) {
  return escaped(path, kMaxPathBytes);
}

// One word for a POSIX shell; what is not printable needs bash's $'...'.
std::string shell_word(const std::string& path) {
  constexpr std::string_view kPlain = "/._-+,:@%";
  const auto plain = [&](char c) { return is_alnum(c) || kPlain.find(c) != std::string_view::npos; };
  if (std::ranges::all_of(path, plain)) return path;
  const std::string printable = shown_path(path);
  const bool ansi = printable != path;
  std::string word = ansi ? "$'" : "'";
  for (const char c : printable) {
    if (c == '\'') {
      word += ansi ? "\\x27" : "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

// Masked first: the text between escapes would no longer look like a token.
std::string shown_line(std::string_view line, std::size_t max_bytes) {
  // What is cut off anyway need not be looked at; a little more, so that no token is cut at its front.
  return escaped(audit::masked(line.substr(0, max_bytes * 2)), max_bytes);
}

std::string shown_diff(const config::PolicySource& policy, const Consent& consent,
                       const ConsentLimits& limits) {
  std::string text = "--- when you trusted it\n+++ now\n";
  const std::vector<DiffLine> lines = line_diff(consent.trusted_text, policy.text);
  const std::size_t count = std::min(lines.size(), limits.diff_lines);
  for (std::size_t i = 0; i < count; ++i) {
    std::string_view line = lines[i].text;
    if (lines[i].mark == '@') {
      text += "@@\n";
      continue;
    }
    const bool ended = line.ends_with('\n');
    if (ended) line.remove_suffix(1);
    text += fmt::format("{}{}\n", lines[i].mark, shown_line(line, limits.line_bytes));
    if (!ended) text += "\\ No newline at end of file\n";
  }
  if (count < lines.size()) text += fmt::format("... {} more lines are not shown\n", lines.size() - count);
  return text;
}

std::string shown_rules(const config::PolicySource& policy, const ConsentLimits& limits) {
  std::string text = "It lets a sandbox\n";
  const std::size_t count = std::min(policy.unapproved.size(), limits.rules);
  for (std::size_t i = 0; i < count; ++i) {
    const policy::GitRule& rule = policy.unapproved[i];
    text += fmt::format("  {} {} with the credential '{}' (line {})\n",
                        rule.access == policy::Access::Push ? "fetch from and push to" : "fetch from",
                        escaped(rule.repo.str(), limits.line_bytes), rule.credential, rule.source.line);
  }
  if (count < policy.unapproved.size()) {
    text += fmt::format("  ... and has {} more such rules that are not shown\n",
                        policy.unapproved.size() - count);
  }
  return text;
}

}  // namespace

std::string_view name(ConsentState state) {
  switch (state) {
    case ConsentState::NotNeeded:
      return "not_needed";
    case ConsentState::Given:
      return "given";
    case ConsentState::Never:
      return "never";
    case ConsentState::Changed:
      return "changed";
  }
  return "";
}

Result<Consent> find_consent(const config::Loaded& loaded, const std::string& trust_folder) {
  if (!loaded.policy || loaded.policy->unapproved.empty()) return Consent{ConsentState::NotNeeded, ""};
  auto trusted = config::TrustStore(trust_folder).find(loaded.policy->path);
  if (!trusted) return fail(std::move(trusted));
  if (!*trusted) return Consent{ConsentState::Never, ""};
  if ((*trusted)->sha256 == config::sha256_hex(loaded.policy->text)) return Consent{ConsentState::Given, ""};
  return Consent{ConsentState::Changed, std::move((*trusted)->text)};
}

std::string describe(const config::PolicySource& policy, const Consent& consent,
                     const ConsentLimits& limits) {
  const std::string path = shown_path(policy.path);
  const std::string history =
      consent.state == ConsentState::Changed
          ? fmt::format("{} has changed since you trusted it:\n{}", path, shown_diff(policy, consent, limits))
          : fmt::format("{} was never trusted.\n", path);
  return history + shown_rules(policy, limits);
}

std::string trust_command(const config::Sources& sources, const config::PolicySource& policy) {
  std::string command = "sallyport policy trust";
  if (sources.config == config::Presence::Named) command += " --config " + shell_word(sources.config_path);
  return command + " " + shell_word(policy.path);
}

std::string stop_text(const config::Sources& sources, const config::PolicySource& policy,
                      const Consent& consent) {
  return fmt::format(
      "the policy uses credentials and needs your consent. {}A sandbox or a stranger may have written it: "
      "read it, and if it shall be so, run\n  {}",
      describe(policy, consent, kShort), trust_command(sources, policy));
}

}  // namespace sallyport::session
