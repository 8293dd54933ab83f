#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace sallyport::cli {
namespace {

// Every script first finds the command that is being typed: the words so far that lead from one to the next.
// A word that is an option's value leads nowhere, unless it is spelled like a command where one may stand.

constexpr char kBashBegin[] = R"sh(# bash completion of sallyport; made by `sallyport completion bash`
_sallyport() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path='' words='' kind='' i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      compopt -o filenames 2>/dev/null
      if ((i + 1 == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$cur")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      fi
      return
    fi
    case "$path/${COMP_WORDS[i]}" in
)sh";

constexpr char kBashEnd[] = R"sh(  case $kind in
    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
    text) return ;;
    session)
      words+=" $("${COMP_WORDS[0]}" list 2>/dev/null |
        while read -r name _; do [[ $name == NAME ]] || echo "$name"; done)" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -F _sallyport sallyport
)sh";

constexpr char kZshBegin[] = R"sh(#compdef sallyport
# zsh completion of sallyport; made by `sallyport completion zsh`
_sallyport_sessions() {
  local -a sessions
  sessions=(${${(f)"$(sallyport list 2>/dev/null)"}%% *})
  sessions=(${sessions:#NAME})
  compadd -a sessions
}
_sallyport() {
  local at='' i n=1
  for ((i = 2; i < CURRENT; i++)); do
    [[ ${words[i]} == -- ]] && { words=("${(@)words[i+1,-1]}"); ((CURRENT -= i)); _normal; return }
    case "$at/${words[i]}" in
)sh";

constexpr char kZshEnd[] = R"sh(  esac
}
if [[ $funcstack[1] == _sallyport ]]; then _sallyport "$@"; else compdef _sallyport sallyport; fi
)sh";

constexpr char kFishBegin[] = R"sh(# fish completion of sallyport; made by `sallyport completion fish`
function __sallyport_path
    set -l at ''
    for word in (commandline -opc)[2..-1]
        test "$word" = --; and echo behind; and return
        switch "$at/$word"
)sh";

constexpr char kFishMiddle[] = R"sh(        end
    end
    echo "$at"
end
function __sallyport_at
    test (__sallyport_path) = "$argv[1]"
end
function __sallyport_sessions
    sallyport list 2>/dev/null | string match -rv '^NAME ' | string replace -r ' .*' ''
end
complete -c sallyport -f
complete -c sallyport -n '__sallyport_at behind' -F
)sh";

// "/gateway/start", by which the scripts know a command.
std::string key_of(const CommandWords& command) {
  if (command.path.empty()) return "";
  std::string key = "/" + command.path;
  for (char& c : key) c = c == ' ' ? '/' : c;
  return key;
}

std::string keys_pattern(const CommandWords& root, std::string_view separator) {
  std::string pattern;
  for (const CommandWords* command : all_commands(root)) {
    if (command->path.empty()) continue;
    if (!pattern.empty()) pattern += separator;
    pattern += key_of(*command);
  }
  return pattern;
}

// In single quotes.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// Of a sentence: what fits beside a candidate.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string_view bash_kind(Word::Kind kind) {
  switch (kind) {
    case Word::Kind::File:
      return "file";
    case Word::Kind::Folder:
      return "folder";
    case Word::Kind::Session:
      return "session";
    case Word::Kind::Text:
    case Word::Kind::None:
    case Word::Kind::Choice:
      return "text";
  }
  return "";
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

// An option's value, by the word before it.
std::string bash_values(const CommandWords& command) {
  std::string cases;
  for (const Word& option : command.options) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(quoted(key_of(command) + " " + name));
    const bool has_choices = option.kind == Word::Kind::Choice;
    cases +=
        fmt::format("    {}) {}={} ;;\n", joined(patterns, "|"), has_choices ? "words" : "kind",
                    has_choices ? quoted(joined(option.choices, " ")) : std::string(bash_kind(option.kind)));
  }
  return cases;
}

std::string bash_candidates(const CommandWords& command) {
  std::vector<std::string> candidates;
  for (const CommandWords& below : command.subcommands)
    candidates.push_back(below.path.substr(below.path.rfind(' ') + 1));
  for (const Word& option : command.options)
    candidates.insert(candidates.end(), option.names.begin(), option.names.end());
  std::string kind;
  for (const Word& positional : command.positionals) {
    candidates.insert(candidates.end(), positional.choices.begin(), positional.choices.end());
    const std::string_view name = bash_kind(positional.kind);
    if (name != "text") kind = fmt::format("; [[ $cur == -* ]] || kind={}", name);
  }
  return fmt::format("    {}) words={}{} ;;\n", quoted(key_of(command)), quoted(joined(candidates, " ")),
                     kind);
}

std::string bash_script(const CommandWords& root) {
  std::string script = kBashBegin;
  script +=
      fmt::format("      {}) path+=/${{COMP_WORDS[i]}} ;;\n    esac\n  done\n", keys_pattern(root, "|"));
  script += "  case \"$path $prev\" in\n";
  for (const CommandWords* command : all_commands(root)) script += bash_values(*command);
  script += "  esac\n  [[ $words$kind ]] || case $path in\n";
  for (const CommandWords* command : all_commands(root)) script += bash_candidates(*command);
  return script + "  esac\n" + kBashEnd;
}

// What _arguments does for a value or a positional word.
std::string zsh_action(const Word& word) {
  switch (word.kind) {
    case Word::Kind::File:
      return "_files";
    case Word::Kind::Folder:
      return "_files -/";
    case Word::Kind::Session:
      return "_sallyport_sessions";
    case Word::Kind::Choice:
      return "(" + joined(word.choices, " ") + ")";
    case Word::Kind::Text:
    case Word::Kind::None:
      return " ";
  }
  return "";
}

// Colons and brackets end a part of an _arguments specification.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : first_line(text)) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_option(const Word& option) {
  std::string specifications;
  for (const std::string& name : option.names) {
    std::string text = fmt::format("*{}[{}]", name, zsh_text(option.help));
    if (!option.value.empty()) text += fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option));
    specifications += " " + quoted(text);
  }
  return specifications;
}

std::string zsh_case(const CommandWords& command) {
  std::string line = fmt::format("    {})\n      _arguments -s", quoted(key_of(command)));
  for (const Word& option : command.options) line += zsh_option(option);
  for (const Word& positional : command.positionals) {
    const std::string name = positional.names.front();
    line +=
        " " + quoted(fmt::format("{}:{}:{}", positional.repeated ? "*" : "", name, zsh_action(positional)));
  }
  if (!command.subcommands.empty()) {
    std::string choices;
    for (const CommandWords& below : command.subcommands) {
      const std::string name = below.path.substr(below.path.rfind(' ') + 1);
      choices += fmt::format(" {}\\:{}", name, quoted(zsh_text(below.summary)));
    }
    line += " " + quoted(fmt::format(":command:(({}))", choices.substr(1)));
  }
  return line + " ;;\n";
}

std::string zsh_script(const CommandWords& root) {
  std::string script = kZshBegin;
  script += fmt::format("      {}) at+=/${{words[i]}}; n=$i ;;\n    esac\n  done\n", keys_pattern(root, "|"));
  script += "  words=(\"${(@)words[n,-1]}\"); ((CURRENT -= n - 1))\n  case $at in\n";
  for (const CommandWords* command : all_commands(root)) script += zsh_case(*command);
  return script + kZshEnd;
}

std::string fish_action(const Word& word) {
  switch (word.kind) {
    case Word::Kind::File:
      return " -F";
    case Word::Kind::Folder:
      return " -a '(__fish_complete_directories)'";
    case Word::Kind::Session:
      return " -a '(__sallyport_sessions)'";
    case Word::Kind::Choice:
      return " -a " + quoted(joined(word.choices, " "));
    case Word::Kind::Text:
    case Word::Kind::None:
      return "";
  }
  return "";
}

std::string fish_lines(const CommandWords& command) {
  const std::string at = fmt::format("complete -c sallyport -n {}",
                                     quoted(fmt::format("__sallyport_at \"{}\"", key_of(command))));
  std::string lines;
  for (const CommandWords& below : command.subcommands) {
    lines += fmt::format("{} -a {} -d {}\n", at, below.path.substr(below.path.rfind(' ') + 1),
                         quoted(first_line(below.summary)));
  }
  for (const Word& option : command.options) {
    std::string names;
    for (const std::string& name : option.names) {
      names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    lines += fmt::format("{}{}{}{} -d {}\n", at, names, option.value.empty() ? "" : " -r",
                         fish_action(option), quoted(first_line(option.help)));
  }
  for (const Word& positional : command.positionals) {
    if (const std::string action = fish_action(positional); !action.empty()) lines += at + action + "\n";
  }
  return lines;
}

std::string fish_script(const CommandWords& root) {
  std::string script = kFishBegin;
  script +=
      fmt::format("            case {}\n                set at \"$at/$word\"\n", keys_pattern(root, " "));
  script += kFishMiddle;
  for (const CommandWords* command : all_commands(root)) script += fish_lines(*command);
  return script;
}

}  // namespace

std::string completion_script(const CommandWords& root, std::string_view shell) {
  if (shell == "bash") return bash_script(root);
  return shell == "zsh" ? zsh_script(root) : fish_script(root);
}

}  // namespace sallyport::cli
