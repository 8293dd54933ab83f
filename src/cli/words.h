// What the command line is made of, read off its one definition: for what is generated from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sallyport::cli {

struct Word {
  // What an option's value, or a positional word, is.
  enum class Kind : std::uint8_t { None, Text, File, Folder, Session, Choice };

  std::vector<std::string> names;  // "-q", "--quiet"; of a positional word one without dashes
  std::string value;               // "FILE"; "" for a flag
  std::string help;
  Kind kind = Kind::None;
  std::vector<std::string> choices;
  bool required = false;
  bool repeated = false;
};

struct CommandWords {
  std::string path;     // "gateway start"; "" of the program itself
  std::string summary;  // its help's first line
  std::string usage;    // behind the program's name
  std::string footer;
  std::vector<Word> options;
  std::vector<Word> positionals;
  std::vector<CommandWords> subcommands;
  bool takes_command = false;  // behind "--"
};

CommandWords words_of(const CLI::App& app);

// The command itself and all below it.
std::vector<const CommandWords*> all_commands(const CommandWords& root);

}  // namespace sallyport::cli
