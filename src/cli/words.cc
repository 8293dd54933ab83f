#include "cli/words.h"

#include <CLI/CLI.hpp>

#include "base/text.h"

namespace sallyport::cli {
namespace {

Word::Kind kind_of(const Word& word) {
  if (!word.choices.empty()) return Word::Kind::Choice;
  if (word.value.starts_with("FILE") || word.value.starts_with("PATH")) return Word::Kind::File;
  if (word.value == "FOLDER") return Word::Kind::Folder;
  if (word.names.front() == "session") return Word::Kind::Session;
  return word.value.empty() ? Word::Kind::None : Word::Kind::Text;
}

// CLI11 shows a value's choices behind its name: "SHELL:{bash,fish,zsh}".
void read_value(const std::string& type, Word& word) {
  const std::size_t begin = type.find(":{");
  word.value = type.substr(0, begin);
  if (begin == std::string::npos) return;
  for (const std::string_view choice : split(type.substr(begin + 2, type.size() - begin - 3), ','))
    word.choices.emplace_back(choice);
}

Word word_of(const CLI::Option& option) {
  Word word;
  for (const std::string& name : option.get_snames()) word.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) word.names.push_back("--" + name);
  if (option.get_positional()) word.names = {option.get_name()};
  const bool takes_value = option.get_items_expected_max() > 0;
  if (takes_value) read_value(option.get_type_name(), word);
  word.help = option.get_description();
  word.kind = kind_of(word);
  word.required = option.get_required();
  word.repeated = option.get_items_expected_max() > 1;
  return word;
}

CommandWords words_below(const CLI::App& app, const std::string& path) {
  CommandWords command;
  command.path = path;
  command.summary = app.get_description();
  command.footer = app.get_footer();
  // Where more than options is to be written, a description has it: "... : sallyport run [OPTIONS] --
  // COMMAND".
  const std::string usage = ": sallyport ";
  if (const std::size_t begin = command.summary.find(usage); begin != std::string::npos) {
    command.usage = command.summary.substr(begin + usage.size());
    command.summary.resize(begin);
  }
  command.takes_command = command.usage.contains("-- COMMAND");
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? command.positionals : command.options).push_back(word_of(*option));
  }
  for (const CLI::App* below : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.subcommands.push_back(
        words_below(*below, path.empty() ? below->get_name() : path + " " + below->get_name()));
  }
  return command;
}

void collect(const CommandWords& command, std::vector<const CommandWords*>& into) {
  into.push_back(&command);
  for (const CommandWords& below : command.subcommands) collect(below, into);
}

}  // namespace

CommandWords words_of(const CLI::App& app) {
  return words_below(app, "");
}

std::vector<const CommandWords*> all_commands(const CommandWords& root) {
  std::vector<const CommandWords*> commands;
  collect(root, commands);
  return commands;
}

}  // namespace sallyport::cli
