// Reads one table strictly: each key is asked for by name and type, and what nobody asked for is a problem.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/toml_document.h"

namespace sallyport::config {

// The text in quotes if showing it can give nothing away, else "the value": short, printable, and without the
// look of a token.
std::string shown(std::string_view text);

class TableReader {
 public:
  // `what` names the table in messages: "[[git]]". Both references must outlive this.
  TableReader(const Value& table, std::string what, Problems& problems);

  // The value of that kind, or nullptr: the key is missing, or has another type, which is a problem.
  const Value* find(std::string_view key, Value::Kind kind);
  // The value of whatever kind.
  const Value* find(std::string_view key);
  // A missing key is a problem too, with that remedy.
  const Value* require(std::string_view key, Value::Kind kind, std::string_view remedy);
  // A key that must not be here, for this reason.
  void refuse(std::string_view key, std::string_view message, std::string_view remedy);
  // A key of a later version.
  void refuse_for_now(std::string_view key);
  // Everything that was not asked for is a problem, with the nearest key that was.
  void finish();

 private:
  const Entry* look_up(std::string_view key);

  const Value& table_;
  std::string what_;
  Problems& problems_;
  std::vector<std::string_view> known_;      // asked for
  std::vector<std::string_view> suggested_;  // of these, the ones to offer instead of an unknown one
};

// In the order of the file.
void sort_by_place(Problems& problems);

}  // namespace sallyport::config
