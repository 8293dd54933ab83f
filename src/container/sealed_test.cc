#include "container/sealed.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sallyport::container {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string status_with(std::string_view bounding, std::string_view no_new_privileges = "1",
                        std::string_view filter = "2") {
  return fmt::format(
      "Name:\tsh\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
      "CapBnd:\t{}\nCapAmb:\t0000000000000000\nNoNewPrivs:\t{}\nSeccomp:\t{}\nSeccomp_filters:\t1\n",
      bounding, no_new_privileges, filter);
}

constexpr std::string_view kNoCapability = "0000000000000000";
constexpr std::string_view kMounts =
    "169 164 0:60 / /proc rw,nosuid - proc proc rw\n"
    "92 169 0:56 /null /proc/kcore rw,nosuid,noexec - tmpfs tmpfs rw\n"
    "92 169 0:56 /null /proc/keys rw,nosuid,noexec - tmpfs tmpfs rw\n"
    "94 169 0:56 /null /proc/timer_list rw,nosuid,noexec - tmpfs tmpfs rw\n"
    "95 171 0:66 / /sys/firmware ro,relatime - tmpfs tmpfs ro\n"
    "87 169 0:60 /bus /proc/bus ro,nosuid - proc proc rw\n"
    "88 169 0:60 /fs /proc/fs ro,nosuid - proc proc rw\n"
    "89 169 0:60 /irq /proc/irq ro,nosuid - proc proc rw\n"
    "91 169 0:60 /sysrq-trigger /proc/sysrq-trigger ro,nosuid - proc proc rw\n";
constexpr std::string_view kSealedSys = "90 169 0:60 /sys /proc/sys ro,nosuid - proc proc rw\n";
constexpr std::string_view kOpenSys = "90 169 0:60 /sys /proc/sys rw,nosuid - proc proc rw\n";

bool everything(std::string_view) {
  return true;
}
bool nothing(std::string_view) {
  return false;
}

std::vector<std::string> flaws_with(const std::string& status, std::string_view sys) {
  return flaws_of_process(status, fmt::format("{}{}", kMounts, sys), everything);
}

TEST(Sealed, AProcessWithoutAnyRightBehindCoveredPathsIsFine) {
  EXPECT_THAT(flaws_with(status_with(kNoCapability), kSealedSys), IsEmpty());
}

TEST(Sealed, EachRightOfAProcessIsAFlaw) {
  EXPECT_THAT(flaws_with(status_with("0000000000000400"), kSealedSys), ElementsAre(HasSubstr("CapBnd")));
  EXPECT_THAT(flaws_with(status_with(kNoCapability, "0"), kSealedSys), ElementsAre(HasSubstr("privileges")));
  EXPECT_THAT(flaws_with(status_with(kNoCapability, "1", "0"), kSealedSys), ElementsAre(HasSubstr("filter")));
}

TEST(Sealed, WhatCannotBeReadIsAFlaw) {
  EXPECT_EQ(flaws_of_process("", "", nothing).size(), 7U);
}

TEST(Sealed, APathThatIsNotCoveredIsAFlawUnlessTheHostHasNone) {
  EXPECT_THAT(flaws_with(status_with(kNoCapability), ""), ElementsAre(HasSubstr("/proc/sys is open")));
  EXPECT_THAT(flaws_with(status_with(kNoCapability), kOpenSys), ElementsAre(HasSubstr("/proc/sys is open")));
  // What is mounted last is what is seen.
  EXPECT_THAT(flaws_with(status_with(kNoCapability), fmt::format("{}{}", kSealedSys, kOpenSys)),
              ElementsAre(HasSubstr("/proc/sys is open")));
  EXPECT_THAT(flaws_of_process(status_with(kNoCapability), "", nothing), IsEmpty());
}

}  // namespace
}  // namespace sallyport::container
