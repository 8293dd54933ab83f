// `sallyport manual`: the manual's pages, generated from the command line's own definition, for man(1).
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/words.h"

namespace sallyport::cli {

struct ManualPage {
  std::string name;  // "sallyport-gateway-start"
  std::string text;  // man(7)
};

// One page a command, the program's own first.
std::vector<ManualPage> manual_pages(const CommandWords& root);

// One page on standard output, or all as NAME.1 in a folder that is there. Returns the exit code.
int print_manual(const CommandWords& root, const ManualOptions& options);

}  // namespace sallyport::cli
