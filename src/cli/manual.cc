#include "cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "base/result.h"
#include "base/text.h"

namespace sallyport::cli {
namespace {

// Text that roff takes as it stands: no command at a line's begin, and '-' as it is typed.
std::string plain(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string page_name(const CommandWords& command) {
  std::string name = command.path.empty() ? "sallyport" : "sallyport-" + command.path;
  for (char& c : name) c = c == ' ' ? '-' : c;
  return name;
}

std::string in_capitals(std::string text) {
  for (char& c : text) c = is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string usage_of(const CommandWords& command) {
  if (!command.usage.empty()) return command.usage;
  std::string usage = command.path;
  if (!command.options.empty()) usage += usage.empty() ? "[OPTIONS]" : " [OPTIONS]";
  for (const Word& word : command.positionals) {
    const std::string name = in_capitals(word.names.front()) + (word.repeated ? "..." : "");
    usage += word.required ? " " + name : " [" + name + "]";
  }
  if (!command.subcommands.empty()) usage += " COMMAND";
  return usage;
}

std::string item(const std::string& tag, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", tag, plain(text));
}

std::string options_of(const CommandWords& command) {
  std::string text;
  for (const Word& word : command.positionals) {
    text += item(fmt::format("\\fI{}\\fR", plain(in_capitals(word.names.front()))), word.help);
  }
  for (const Word& option : command.options) {
    std::string tag;
    for (const std::string& name : option.names)
      tag += fmt::format("{}\\fB{}\\fR", tag.empty() ? "" : ", ", plain(name));
    if (!option.value.empty()) tag += fmt::format(" \\fI{}\\fR", plain(option.value));
    std::string help = option.help;
    if (!option.choices.empty()) help += fmt::format(" ({})", fmt::join(option.choices, ", "));
    text += item(tag, help);
  }
  return text.empty() ? "" : ".SH OPTIONS\n" + text;
}

std::string commands_of(const CommandWords& command) {
  std::string text;
  for (const CommandWords& below : command.subcommands) {
    text += item(fmt::format("\\fB{}\\fR(1)", plain(page_name(below))), below.summary);
  }
  return text.empty() ? "" : ".SH COMMANDS\n" + text;
}

// A help's end: paragraphs, and blocks of lines below a heading that ends with a colon.
std::string footer_of(const CommandWords& command) {
  std::string text;
  bool in_block = false;
  bool breaks = false;  // an empty line came
  for (const std::string_view line : split(command.footer, '\n')) {
    if (line.empty()) {
      breaks = true;
      continue;
    }
    const bool is_indented = line.starts_with(' ');
    if (in_block && !is_indented) {
      text += ".fi\n";
      in_block = false;
    }
    if (line.ends_with(':') && !is_indented) {
      text += fmt::format(".SH {}\n.nf\n", plain(in_capitals(std::string(line.substr(0, line.size() - 1)))));
      in_block = true;
    } else {
      if (text.empty()) {
        text = ".SH DESCRIPTION\n";
      } else if (breaks) {
        text += ".PP\n";
      }
      text += plain(is_indented ? line.substr(2) : line) + "\n";
    }
    breaks = false;
  }
  return in_block ? text + ".fi\n" : text;
}

std::string also_of(const CommandWords& command) {
  if (command.path.empty()) return "";
  return ".SH SEE ALSO\n\\fBsallyport\\fR(1)\n";
}

ManualPage page_of(const CommandWords& command) {
  const std::string name = page_name(command);
  std::string summary = command.summary;
  for (char& c : summary) c = c == '\n' ? ' ' : c;
  std::string text = fmt::format(".TH {} 1 \"\" \"sallyport {}\" \"Sallyport\"\n", plain(in_capitals(name)),
                                 SALLYPORT_VERSION);
  text += fmt::format(".SH NAME\n{} \\- {}\n", plain(name), plain(summary));
  text += fmt::format(".SH SYNOPSIS\n\\fBsallyport\\fR {}\n", plain(usage_of(command)));
  text += commands_of(command) + options_of(command);
  return {name, text + footer_of(command) + also_of(command)};
}

Status write_pages(const std::vector<ManualPage>& pages, const std::string& folder) {
  for (const ManualPage& page : pages) {
    const std::string path = folder + "/" + page.name + ".1";
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << page.text << std::flush;
    if (!file) return fail(Reason::Internal, path + " cannot be written");
  }
  return {};
}

}  // namespace

std::vector<ManualPage> manual_pages(const CommandWords& root) {
  std::vector<ManualPage> pages;
  for (const CommandWords* command : all_commands(root)) pages.push_back(page_of(*command));
  return pages;
}

int print_manual(const CommandWords& root, const ManualOptions& options) {
  const std::vector<ManualPage> pages = manual_pages(root);
  if (options.folder) {
    const auto status = write_pages(pages, *options.folder);
    if (!status) fmt::print(stderr, "sallyport: {}\n", status.error().detail);
    return status ? kExitOk : kExitFailed;
  }
  std::string name = "sallyport";
  for (const std::string& word : options.command) name += "-" + word;
  const auto page = std::ranges::find(pages, name, &ManualPage::name);
  if (page == pages.end()) {
    fmt::print(stderr, "sallyport: there is no command '{}'\n",
               escaped(fmt::format("{}", fmt::join(options.command, " "))));
    return kExitUsage;
  }
  fmt::print("{}", page->text);
  return kExitOk;
}

}  // namespace sallyport::cli
