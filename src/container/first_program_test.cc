#include "container/first_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace sallyport::container {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kSealed = {
    "600 500 0:50 / / ro,relatime - overlay overlay rw,lowerdir=a",
    "601 600 0:51 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw",
    "602 600 0:52 / /run rw,nosuid,nodev,relatime - tmpfs tmpfs rw,uid=1000",
    "603 602 8:1 /usr/libexec/sallyport-init /run/sallyport/init ro,relatime - ext4 /dev/sda1 rw",
    "604 602 8:1 /state/init /run/sallyport/control ro,relatime - ext4 /dev/sda1 rw",
};

std::string why_not(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const Status status = check_program_mount(text);
  return status ? "" : status.error().detail;
}

std::string why_not_with(std::size_t index, const std::string& line) {
  auto lines = kSealed;
  lines.at(index) = line;
  return why_not(lines);
}

std::string why_not_also(const std::string& line) {
  auto lines = kSealed;
  lines.push_back(line);
  return why_not(lines);
}

TEST(ProgramMount, IsWhereItShouldBeAndNothingLiesAboveIt) {
  EXPECT_EQ(why_not(kSealed), "");
  EXPECT_EQ(why_not_also("605 600 0:60 / /data rw - ext4 /dev/sda1 rw"), "");
}

TEST(ProgramMount, IsNotOneThatALinkLedElsewhere) {
  // /run/sallyport/init is a link to /a/b/c/d/init, which a volume covers.
  EXPECT_THAT(why_not_with(3, "603 600 8:1 /usr/init /a/b/c/d/init ro - ext4 /dev/sda1 rw"),
              HasSubstr("is not where it should be"));
  // /run is a link to /x.
  EXPECT_THAT(why_not_with(2, "602 600 0:52 / /x rw - tmpfs tmpfs rw"), HasSubstr("/run is a link"));
  EXPECT_THAT(why_not_with(2, "602 600 0:52 /deeper /run rw - tmpfs tmpfs rw"), HasSubstr("/run is a link"));
}

TEST(ProgramMount, IsNotOneThatIsCovered) {
  EXPECT_THAT(why_not_also("605 602 0:60 / /run rw - ext4 /dev/sda1 rw"), HasSubstr("/run is a link"));
  EXPECT_THAT(why_not_also("605 602 0:60 / /run/sallyport rw - ext4 /dev/sda1 rw"),
              HasSubstr("/run/sallyport has a volume"));
  EXPECT_THAT(why_not_also("605 603 0:60 / /run/sallyport/init rw - ext4 /dev/sda1 rw"),
              HasSubstr("is not where it should be"));
  EXPECT_THAT(why_not_with(2, "602 601 0:52 / /run rw - tmpfs tmpfs rw"), HasSubstr("/run is a link"));
  EXPECT_THAT(why_not_with(3, "603 600 8:1 /usr/init /run/sallyport/init ro - ext4 /dev/sda1 rw"),
              HasSubstr("is not where it should be"));
}

TEST(ProgramMount, IsInARootFolderThatNobodyCanWriteTo) {
  EXPECT_THAT(why_not_with(0, "600 500 0:50 / / rw,relatime - overlay overlay rw"), HasSubstr("read-only"));
  EXPECT_THAT(why_not_with(0, "600 500 0:50 / / root,relatime - overlay overlay rw"), HasSubstr("read-only"));
  EXPECT_THAT(why_not_also("700 600 0:50 / / ro,relatime - overlay overlay rw"), HasSubstr("read-only"));
}

TEST(ProgramMount, IsNotInATableThatMakesNoSense) {
  EXPECT_NE(why_not({}), "");
  EXPECT_THAT(why_not_also("nonsense"), HasSubstr("cannot be read"));
  for (std::size_t i : {std::size_t{0}, std::size_t{2}, std::size_t{3}}) {
    auto lines = kSealed;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(why_not(lines), "") << i;
  }
}

TEST(FirstProgram, IsNoneOfTheHosts) {
  EXPECT_NE(check_first_program(::getpid(), "/proc/self/exe").error().detail, "");
}

}  // namespace
}  // namespace sallyport::container
