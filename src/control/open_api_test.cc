#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "base/text.h"
#include "control/session_routes.h"
#include "control/standard_routes.h"

namespace sallyport::control {
namespace {

std::string read_file(const std::string& name) {
  std::ifstream file(std::string(SALLYPORT_SOURCE_DIR) + "/docs/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> documented_calls() {
  std::set<std::string> calls;
  const boost::json::value page = boost::json::parse(read_file("openapi.json"));
  for (const auto& [path, methods] : page.at("paths").as_object()) {
    for (const auto& [method, call] : methods.as_object()) {
      std::string name(method);
      for (char& c : name) c = is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c;
      calls.insert(name + " " + std::string(path));
      EXPECT_TRUE(call.as_object().contains("summary")) << path;
      EXPECT_TRUE(call.at("responses").as_object().contains("default")) << path;
    }
  }
  return calls;
}

TEST(OpenApi, ListsTheCallsThatThereAreAndNoOthers) {
  std::set<std::string> calls;
  os::EventLoop loop;
  session::Gateway gateway(loop);
  Sessions sessions(loop, gateway);
  for (const Route& route : standard_routes({})) calls.insert(route.method + " " + route.pattern);
  const Route shutdown = shutdown_route({}, {});
  calls.insert(shutdown.method + " " + shutdown.pattern);
  for (const Route& route : session_routes(loop, sessions, {}, {}))
    calls.insert(route.method + " " + route.pattern);
  EXPECT_EQ(calls, documented_calls());
}

TEST(OpenApi, SaysWhichVersionItIs) {
  const boost::json::value page = boost::json::parse(read_file("openapi.json"));
  EXPECT_EQ(page.at("info").at("version"), kApiVersion);
}

}  // namespace
}  // namespace sallyport::control
