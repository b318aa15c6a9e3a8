#include "base/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "files/scratch_folder.h"

namespace simile::base {
namespace {

class AtomicFileTest : public testing::Test {
 protected:
  std::ptrdiff_t FileCount() const {
    return std::distance(std::filesystem::directory_iterator(folder_), {});
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
};

TEST_F(AtomicFileTest, WritesTheNewTextAndLeavesNoDraft) {
  const std::filesystem::path file = folder_ / "port";
  std::ofstream(file) << "an older and longer content";
  ASSERT_TRUE(ReplaceFile(file, "50051\n", {}).ok());
  EXPECT_EQ(*ReadWholeFile(file, 100), "50051\n");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(AtomicFileTest, GivesTheFileItsModeLessTheUmask) {
  const std::filesystem::path file = folder_ / "port";
  const auto mode = [&] {
    struct stat status {};
    EXPECT_EQ(stat(file.c_str(), &status), 0);
    return status.st_mode & 0777U;
  };
  const mode_t umask_before = umask(022);
  ASSERT_TRUE(ReplaceFile(file, "1\n", {}).ok());
  EXPECT_EQ(mode(), 0600U);
  ASSERT_TRUE(ReplaceFile(file, "1\n", {.mode = 0666}).ok());
  EXPECT_EQ(mode(), 0644U);
  umask(umask_before);
}

TEST_F(AtomicFileTest, KeepsTheModeAndTheGroupOfTheOldFileOnRequest) {
  const std::filesystem::path file = folder_ / "access.json";
  const auto status = [&] {
    struct stat found {};
    EXPECT_EQ(stat(file.c_str(), &found), 0);
    return found;
  };
  ASSERT_TRUE(ReplaceFile(file, "new", {.mode = 0600, .like_old = true}).ok());
  EXPECT_EQ(status().st_mode & 0777U, 0600U) << "there was no old file";
  ASSERT_EQ(chmod(file.c_str(), 0646), 0);
  // Only root may give a file to another group of its choice.
  if (geteuid() == 0) {
    ASSERT_EQ(chown(file.c_str(), 12'345, 23'456), 0);
  }
  const struct stat old = status();
  ASSERT_TRUE(ReplaceFile(file, "newer", {.mode = 0600, .like_old = true}).ok());
  EXPECT_EQ(status().st_mode & 0777U, 0646U) << "whatever the umask";
  EXPECT_EQ(status().st_uid, old.st_uid);
  EXPECT_EQ(status().st_gid, old.st_gid);
  EXPECT_EQ(*ReadWholeFile(file, 100), "newer");
}

TEST_F(AtomicFileTest, WritesIntoAFolderThatCannotBeRead) {
  const std::filesystem::path file = folder_ / "drop" / "port";
  std::filesystem::create_directory(folder_ / "drop");
  std::filesystem::permissions(folder_ / "drop", std::filesystem::perms(0300));
  EXPECT_TRUE(ReplaceFile(file, "1\n", {}).ok());
  std::filesystem::permissions(folder_ / "drop", std::filesystem::perms(0700));
  EXPECT_EQ(*ReadWholeFile(file, 2), "1\n");
}

TEST_F(AtomicFileTest, CreatesParentFoldersOnRequest) {
  const std::filesystem::path file = folder_ / "new" / "folder" / "file";
  ASSERT_TRUE(ReplaceFile(file, "text", {.create_folders = true}).ok());
  EXPECT_EQ(*ReadWholeFile(file, 4), "text");
}

TEST_F(AtomicFileTest, ReportsWhyTheFileCannotBeWritten) {
  const std::filesystem::path file = folder_ / "no" / "port";
  EXPECT_EQ(
      ReplaceFile(file, "1\n", {}),
      absl::UnavailableError(file.string() + ": cannot be written: No such file or directory"));
}

TEST_F(AtomicFileTest, LeavesNoDraftWhenTheFileCannotBeReplaced) {
  const std::filesystem::path file = folder_ / "taken";
  std::filesystem::create_directory(file);
  EXPECT_EQ(ReplaceFile(file, "1\n", {}),
            absl::UnavailableError(file.string() + ": cannot be written: Is a directory"));
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(AtomicFileTest, ReadsAMissingFileAsEmpty) {
  EXPECT_EQ(*ReadWholeFile(folder_ / "none", 10), "");
}

TEST_F(AtomicFileTest, RefusesToReadALargerFileOrAFolder) {
  const std::filesystem::path file = folder_ / "long";
  std::ofstream(file) << "eleven bytes";
  EXPECT_EQ(ReadWholeFile(file, 11).status(),
            absl::InvalidArgumentError(file.string() + ": over 11 bytes"));
  EXPECT_EQ(ReadWholeFile(folder_, 11).status(),
            absl::InvalidArgumentError(folder_.string() + ": not a file"));
}

TEST_F(AtomicFileTest, ReadsAFileOfExactlyTheBound) {
  const std::filesystem::path file = folder_ / "exact";
  std::ofstream(file) << "eleven byte";
  EXPECT_EQ(*ReadWholeFile(file, 11), "eleven byte");
}

TEST_F(AtomicFileTest, RefusesAPipeWithoutWaitingForAWriter) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadWholeFile(pipe, 11).status(),
            absl::InvalidArgumentError(pipe.string() + ": not a file"));
}

}  // namespace
}  // namespace simile::base
