#include "control/exposition.h"

#include <gtest/gtest.h>

namespace sallyport::control {
namespace {

TEST(Exposition, WritesFamiliesAndSamples) {
  Exposition out;
  out.family("a_total", Exposition::Type::Counter, "One\\two\nand \"three\".");
  out.sample(7);
  out.sample(8, {{"x", "plain"}, {"y", "\\ \" \n"}});
  out.family("b", Exposition::Type::Histogram, "B.");
  out.sample("_bucket", "1", {{"le", "+Inf"}});
  EXPECT_EQ(out.take(),
            "# HELP a_total One\\\\two\\nand \"three\".\n"
            "# TYPE a_total counter\n"
            "a_total 7\n"
            "a_total{x=\"plain\",y=\"\\\\ \\\" \\n\"} 8\n"
            "# HELP b B.\n"
            "# TYPE b histogram\n"
            "b_bucket{le=\"+Inf\"} 1\n");
}

}  // namespace
}  // namespace sallyport::control
