#include "vault/source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace sallyport::vault {
namespace {

using testing::HasSubstr;
using testing::Not;

// A regular file without a name.
Fd file_with(std::string_view bytes) {
  Fd file(::memfd_create("credential", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  return file;
}

TEST(ReadCredential, TakesOneLineWithOrWithoutItsNewline) {
  for (const std::string text : {"token", "token\n"}) {
    const auto secret = read_credential(file_with(text));  // written, so the position is at its end
    ASSERT_TRUE(secret) << secret.error().detail;
    EXPECT_EQ(secret->expose(), "token");
  }
  EXPECT_TRUE(read_credential(file_with(std::string(4096, 'x'))));
  EXPECT_TRUE(read_credential(file_with(std::string(4096, 'x') + "\n")));
}

TEST(ReadCredential, RefusesEverythingElseWithoutShowingIt) {
  struct Case {
    std::string bytes;
    const char* says;
  };
  const Case cases[] = {
      {"", "empty"},
      {"\n", "empty"},
      {"secretvalue\n\n", "more than one line"},
      {"secretvalue\nsecond\n", "more than one line"},
      {"secretvalue\r\n", "not printable"},
      {"secret value", "not printable"},
      {"secretvalue\t", "not printable"},
      {std::string("secretvalue\0", 12), "not printable"},
      {"secretvalue\xc3\xa4", "not printable"},
      {"\xef\xbb\xbfsecretvalue", "not printable"},
      {"secretvalue" + std::string(4096, 'x'), "longer than"},
      {"secretvalue" + std::string(100'000, 'x'), "longer than"},
  };
  for (const Case& c : cases) {
    const auto secret = read_credential(file_with(c.bytes));
    ASSERT_FALSE(secret) << c.says;
    EXPECT_EQ(secret.error().reason, Reason::CredentialUnavailable);
    EXPECT_THAT(secret.error().detail, HasSubstr(c.says));
    EXPECT_THAT(secret.error().detail, Not(HasSubstr("secret")));
  }
}

TEST(ReadCredential, RefusesWhatIsNoRegularFile) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  for (const Fd* file : {&reader}) {
    const auto secret = read_credential(*file);
    ASSERT_FALSE(secret);
    EXPECT_THAT(secret.error().detail, HasSubstr("not a regular file"));
  }
  const Fd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_FALSE(read_credential(folder));
  const Fd device(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(read_credential(device));
  EXPECT_FALSE(read_credential(Fd()));
}

}  // namespace
}  // namespace sallyport::vault
