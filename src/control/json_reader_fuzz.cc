#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control/json_reader.h"

// What is read must mean the same when it is written again, and no getter may mind what it is given.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sallyport::control;
  const auto value = parse_json({reinterpret_cast<const char*>(data), size});
  if (!value) return 0;
  const std::string written = boost::json::serialize(*value);
  const auto again = parse_json({written.data(), written.size()});
  if (!again || boost::json::serialize(*again) != written) std::abort();

  JsonReader body("fuzz", *value);
  const auto name = body.text("name", 8);
  if (name && name->size() > 8) std::abort();
  const auto count = body.integer("count", 1, 5);
  if (count && (*count < 1 || *count > 5)) std::abort();
  (void)body.flag("tty");
  (void)body.texts("command", 2);
  (void)body.text_map("env", 2);
  body.object("limits", [](JsonReader& limits) { (void)limits.size("memory"); });
  (void)body.finish();
  return 0;
}
