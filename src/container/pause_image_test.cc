#include "container/pause_image.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "os/local_test.h"
#include "os/process.h"
#include "os/safe_path.h"

namespace sallyport::container {
namespace {

using ::testing::HasSubstr;

// A 64-bit ELF with one part of this type, and some bytes more.
std::string program_with(std::uint32_t part_type) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_phoff = sizeof head;
  head.e_phnum = 1;
  Elf64_Phdr part{};
  part.p_type = part_type;
  std::string program(reinterpret_cast<const char*>(&head), sizeof head);
  program.append(reinterpret_cast<const char*>(&part), sizeof part);
  return program + std::string(700, 'x');
}

class PauseImageTest : public ::testing::Test {
 protected:
  Result<PauseImage> image_of(const std::string& program) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << program;
    return make_pause_image(path_);
  }
  std::string why_not(const std::string& program) {
    auto image = image_of(program);
    return image ? "" : image.error().detail;
  }

  os::PrivateFolder room_;
  std::string path_ = room_ / "program";
};

TEST_F(PauseImageTest, IsATarWithTheProgramAndNothingElse) {
  const std::string program = program_with(PT_LOAD);
  auto image = image_of(program);
  ASSERT_TRUE(image) << image.error().detail;
  const std::string tar = room_ / "image.tar";
  std::ofstream(tar, std::ios::binary) << os::read_whole(image->tar.get(), kMaxProgramBytes).value();
  const std::string listing = room_ / "listing";
  const std::string command = "tar --numeric-owner --full-time -tvf " + tar + " >" + listing +
                              " && tar -xf " + tar + " -C " + room_.path();
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream lines(listing);
  std::string line;
  std::getline(lines, line);
  EXPECT_THAT(line, HasSubstr("-rwxr-xr-x 0/0 "));
  EXPECT_THAT(line, HasSubstr(" " + std::to_string(program.size()) + " "));
  EXPECT_TRUE(line.ends_with(" sallyport-init")) << line;
  EXPECT_FALSE(std::getline(lines, line)) << line;
  std::ifstream unpacked(room_ / "sallyport-init", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(unpacked), {}), program);
}

TEST_F(PauseImageTest, EndsWithTwoEmptyBlocksWhateverItsSize) {
  for (std::size_t extra : {std::size_t{0}, std::size_t{1}, std::size_t{511}, std::size_t{512}}) {
    const std::string program = program_with(PT_LOAD) + std::string(extra, 'y');
    auto image = image_of(program);
    ASSERT_TRUE(image);
    const std::string tar = os::read_whole(image->tar.get(), kMaxProgramBytes).value();
    EXPECT_EQ(tar.size() % 512, 0U);
    EXPECT_EQ(tar.substr(512, program.size()), program);
    EXPECT_EQ(tar.substr(tar.size() - 1024), std::string(1024, '\0'));
  }
}

TEST_F(PauseImageTest, IsTheSameForTheSameProgramAndAnotherForAnother) {
  const std::string program = program_with(PT_LOAD);
  const std::string first = image_of(program).value().tag;
  EXPECT_EQ(first.size(), 32U);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(image_of(program).value().tag, first);
  EXPECT_NE(image_of(program + "x").value().tag, first);
}

#ifndef SALLYPORT_DYNAMIC_INIT  // which takes any
TEST_F(PauseImageTest, RefusesWhatCannotRunInAnEmptyFolder) {
  const std::string fine = program_with(PT_LOAD);
  EXPECT_EQ(why_not(fine), "");
  EXPECT_THAT(why_not(program_with(PT_INTERP)), HasSubstr("is not linked statically"));
  EXPECT_THAT(why_not("#!/bin/sh\n" + std::string(200, '#')), HasSubstr("is not linked statically"));
  EXPECT_THAT(why_not(""), HasSubstr("is not linked statically"));
  for (std::size_t size = 0; size < sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr); ++size) {
    EXPECT_NE(why_not(fine.substr(0, size)), "") << size;
  }
  Elf64_Ehdr head{};
  std::memcpy(&head, fine.data(), sizeof head);
  for (const std::uint64_t offset : {std::uint64_t{1} << 40, UINT64_MAX, UINT64_MAX - 8}) {
    head.e_phoff = offset;
    std::string bent = fine;
    std::memcpy(bent.data(), &head, sizeof head);
    EXPECT_NE(why_not(bent), "") << offset;
  }
}
#endif

TEST_F(PauseImageTest, RefusesAProgramThatIsNotThereOrTooLarge) {
  EXPECT_THAT(make_pause_image(room_ / "nothing").error().detail, HasSubstr("open "));
  std::ofstream(path_) << "x";
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(kMaxProgramBytes + 1)), 0);
  EXPECT_EQ(make_pause_image(path_).error().reason, Reason::TooLarge);
}

}  // namespace
}  // namespace sallyport::container
