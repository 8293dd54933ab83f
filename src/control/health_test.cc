#include "control/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sandbox/folder_test.h"

namespace sallyport::control {
namespace {

using testing::HasSubstr;

TEST(Health, AnAuditLogIsWritableBeforeItIsThere) {
  const sandbox::TestFolder folder;
  const std::string path = folder.path() + "/audit.jsonl";
  EXPECT_FALSE(why_no_audit(path));
  std::ofstream(path) << "line\n";
  EXPECT_FALSE(why_no_audit(path));
}

TEST(Health, SaysWhyTheAuditLogCannotBeWritten) {
  const sandbox::TestFolder folder;
  const std::string gone = folder.path() + "/gone/audit.jsonl";
  auto why = why_no_audit(gone);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message, HasSubstr("gone/audit.jsonl cannot be written: No such file"));
  const std::string path = folder.path() + "/audit.jsonl";
  std::filesystem::create_symlink("/dev/null", path);
  why = why_no_audit(path);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message, HasSubstr("symbolic links"));
  EXPECT_THAT(why->hint, HasSubstr("`ls -l`"));
  if (::geteuid() == 0) return;
  std::filesystem::remove(path);
  std::ofstream(path) << "line\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_TRUE(why_no_audit(path));
}

TEST(Health, AFullDiskIsTold) {
  EXPECT_FALSE(why_no_room("/var/audit.jsonl", kMinFreeAuditBytes));
  const auto why = why_no_room("/var/audit.jsonl", kMinFreeAuditBytes - 1);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message, HasSubstr("the disk of the audit log /var/audit.jsonl is full"));
}

}  // namespace
}  // namespace sallyport::control
