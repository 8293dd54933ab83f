// Every file of tests/data/policies/bad and bad_operator is refused with exactly the lines of its .expected.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "config/testing.h"

namespace sallyport::config {
namespace {

std::set<std::filesystem::path> toml_files(const std::string& folder) {
  std::set<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_path("tests/data/policies/" + folder))) {
    if (entry.path().extension() == ".toml") files.insert(entry.path());
  }
  return files;
}

std::string expected_for(std::filesystem::path file) {
  return read_for_test(file.replace_extension(".expected"));
}

std::string problems_of_policy(const std::string& text, const std::string& name) {
  const OperatorConfig config = example_operator_config();
  const auto policy = parse_policy(text, name, config);
  if (!policy) return joined(policy.error());
  const auto grant = make_grant(*policy, {}, config);
  return grant ? "" : joined(grant.error());
}

std::string problems_of_operator_config(const std::string& text, const std::string& name) {
  const auto config = parse_operator_config(text, name, "/home/me");
  return config ? "" : joined(config.error());
}

TEST(BadPolicies, AreRefusedWithTheirExactMessages) {
  const auto files = toml_files("bad");
  EXPECT_GE(files.size(), 60U);
  for (const auto& file : files) {
    const std::string expected = expected_for(file);
    EXPECT_FALSE(expected.empty()) << file;
    EXPECT_EQ(problems_of_policy(read_for_test(file), file.filename()), expected) << file;
  }
}

TEST(BadOperatorFiles, AreRefusedWithTheirExactMessages) {
  const auto files = toml_files("bad_operator");
  EXPECT_GE(files.size(), 40U);
  for (const auto& file : files) {
    const std::string expected = expected_for(file);
    EXPECT_FALSE(expected.empty()) << file;
    EXPECT_EQ(problems_of_operator_config(read_for_test(file), file.filename()), expected) << file;
  }
}

TEST(BadFiles, NeverHaveTheirSecretsRepeated) {
  for (const std::string folder : {"bad", "bad_operator"}) {
    for (const auto& file : toml_files(folder)) {
      const std::string expected = expected_for(file);
      for (const char* secret : {"ghp_", "glpat-", "hunter2", "d1c2b3a4", "3141592653"}) {
        EXPECT_EQ(expected.find(secret), std::string::npos) << file;
      }
    }
  }
}

TEST(GoodPolicies, AreAccepted) {
  for (const auto& file : toml_files("good")) {
    EXPECT_EQ(problems_of_policy(read_for_test(file), file.filename()), "") << file;
  }
  for (const auto& file : toml_files("good_operator")) {
    EXPECT_EQ(problems_of_operator_config(read_for_test(file), file.filename()), "") << file;
  }
}

}  // namespace
}  // namespace sallyport::config
