// A question to the person at the terminal, before anything is started.
#pragma once

#include <string>

namespace sallyport::cli {

// Whether somebody is there: standard input and error are terminals, and we are in the foreground.
bool can_ask();

// Shows the question and reads one line of standard input. Only "y" and "yes" mean yes; what was typed before
// the question, or sent by the terminal itself in answer to what some program printed, is thrown away.
bool ask(const std::string& question);

}  // namespace sallyport::cli
