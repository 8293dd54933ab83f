#include "sandbox/seccomp_profile.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "sandbox/syscall_rules.h"

namespace sallyport::sandbox {
namespace {

constexpr const char* kFile = SALLYPORT_SOURCE_DIR "/packaging/seccomp.json";

TEST(SeccompProfile, IsTheFileThatIsInstalled) {
  if (std::getenv("SALLYPORT_TEST_WRITE") != nullptr) std::ofstream(kFile) << seccomp_profile();
  std::ifstream file(kFile);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, seccomp_profile()) << "write it anew: SALLYPORT_TEST_WRITE=1 sandbox_test "
                                        "--gtest_filter=SeccompProfile.*";
}

TEST(SyscallRules, CompareNoArgumentTwice) {
  for (const SyscallRule& rule : syscall_rules()) {
    std::set<unsigned> compared;
    for (const scmp_arg_cmp& argument : rule.arguments) {
      EXPECT_TRUE(compared.insert(argument.arg).second)
          << rule.calls.front() << ": engines would take either";
      EXPECT_TRUE(argument.op == SCMP_CMP_MASKED_EQ || argument.op == SCMP_CMP_NE) << rule.calls.front();
    }
  }
}

}  // namespace
}  // namespace sallyport::sandbox
