// For tests: what Docker 20.10 said about a container that is as sealed as ours are.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/container_state.h"

namespace sallyport::engine {

inline boost::json::value real_state(const char* name) {
  std::ifstream in(std::string(SALLYPORT_SOURCE_DIR "/fuzz/corpus/engine_container_state/") + name);
  return boost::json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
}

inline Result<ContainerState> state_with(const char* pointer, const boost::json::value& value) {
  boost::json::value all = real_state("running.json");
  all.at_pointer(pointer) = value;
  return read_container_state(boost::json::serialize(all));
}

// Without the field `name` of the object at `pointer`.
inline Result<ContainerState> state_without(const char* pointer, const char* name) {
  boost::json::value all = real_state("running.json");
  EXPECT_EQ(all.at_pointer(pointer).as_object().erase(name), 1U) << name;
  return read_container_state(boost::json::serialize(all));
}

}  // namespace sallyport::engine
