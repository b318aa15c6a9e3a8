// Cases that a repository cannot contain: links, pipes, and files that change while being read.
#include "data/load/folder.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/formats/buffered_reader.h"
#include "data/load/dataset_sample.h"
#include "data/load/load.h"
#include "files/npy_file.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const Folder& folder, const std::string& name) {
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile(name);
  if (!source.ok()) return std::string(source.status().message());
  BufferedReader reader(**source);
  std::string bytes((*source)->size(), '\0');
  const absl::Status status = reader.ReadExact(bytes);
  return status.ok() ? bytes : std::string(status.message());
}

class FolderTest : public testing::Test {
 protected:
  FolderTest() {
    outside_.Write("secret", "outside");
    inside_.Write("plain", "hello");
    inside_.Write("media/inner", "inner");
  }
  // A folder whose links may lead to `within`, too; empty: anywhere.
  Folder Open(const fs::path& within) {
    absl::StatusOr<Folder> folder = Folder::Open(inside_.path(), within);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return *std::move(folder);
  }

  Folder Open() { return Open(inside_.path()); }

  ScratchFolder inside_;
  ScratchFolder outside_;
};

constexpr std::string_view kLeadsOut =
    ": is a link that leads out of the folders that may be loaded here; put the file itself there, "
    "as `cp -rL` does";

TEST_F(FolderTest, ReadsFilesAndLinksThatStayInside) {
  fs::create_symlink("media/inner", inside_.path() / "link");
  fs::create_directory_symlink("media", inside_.path() / "linked_folder");
  fs::create_symlink(inside_.path() / "plain", inside_.path() / "absolute_link");
  const Folder folder = Open();
  EXPECT_EQ(ReadAll(folder, "plain"), "hello");
  EXPECT_EQ(ReadAll(folder, "media/inner"), "inner");
  EXPECT_EQ(ReadAll(folder, "link"), "inner");
  EXPECT_EQ(ReadAll(folder, "linked_folder/inner"), "inner");
  EXPECT_EQ(ReadAll(folder, "absolute_link"), "hello");
}

TEST_F(FolderTest, RefusesLinksThatLeadOutWithoutSayingWhereTo) {
  fs::create_symlink(outside_.path() / "secret", inside_.path() / "link");
  fs::create_directory_symlink(outside_.path(), inside_.path() / "linked_folder");
  fs::create_symlink("../" + outside_.path().filename().string() + "/secret",
                     inside_.path() / "relative_link");
  const Folder folder = Open();
  for (const std::string name : {"link", "linked_folder/secret", "relative_link"}) {
    EXPECT_EQ(ReadAll(folder, name), name + std::string(kLeadsOut));
  }
}

TEST_F(FolderTest, FollowsLinksAsFarAsTheyMayLead) {
  const ScratchFolder other;
  other.Write("secret", "other");
  outside_.Write("objects/ab/file", "object");
  fs::create_symlink(outside_.path() / "secret", inside_.path() / "link");
  fs::create_directory_symlink(outside_.path() / "objects", inside_.path() / "folder");
  fs::create_symlink(other.path() / "secret", outside_.path() / "onward");
  fs::create_symlink(outside_.path() / "onward", inside_.path() / "onward");
  const Folder anywhere = Open("");
  const Folder within = Open(outside_.path());
  for (const Folder* const folder : {&anywhere, &within}) {
    EXPECT_EQ(ReadAll(*folder, "link"), "outside");
    EXPECT_EQ(ReadAll(*folder, "folder/ab/file"), "object");
    EXPECT_EQ(ReadAll(*folder, "plain"), "hello");
    EXPECT_EQ(folder->List("folder/ab/", 10)->size(), 1U);
  }
  EXPECT_EQ(ReadAll(anywhere, "onward"), "other");
  EXPECT_EQ(ReadAll(within, "onward"), "onward" + std::string(kLeadsOut));
  EXPECT_EQ(ReadAll(Open(outside_.path() / "objects"), "link"), "link" + std::string(kLeadsOut));
}

TEST_F(FolderTest, ListsASubfolderUnlessALinkLeadsOut) {
  fs::create_directory_symlink("media", inside_.path() / "linked_folder");
  fs::create_directory_symlink(outside_.path(), inside_.path() / "users");
  const Folder folder = Open();
  const auto list = [&](const std::string& subfolder, std::size_t count_max = 10) {
    return folder.List(subfolder, count_max).value();
  };
  ASSERT_EQ(list("media/").size(), 1U);
  EXPECT_EQ(list("media/").front().display_name, "media/inner");
  EXPECT_EQ(list("linked_folder/").size(), 1U);
  EXPECT_TRUE(list("users/").empty());
  EXPECT_TRUE(list("plain").empty());
  EXPECT_TRUE(list("absent/").empty());
  EXPECT_EQ(list("").size(), 4U);
  EXPECT_EQ(list("", 2).size(), 2U);
}

TEST_F(FolderTest, DoesNotListLessForWantOfDescriptors) {
  const Folder folder = Open();
  const int next = dup(STDERR_FILENO);  // the lowest number that is free
  close(next);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto listed = folder.List("media/", 10);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(base::ReasonOf(listed.status()), base::ErrorReason::kOutOfMemory);
  EXPECT_EQ(listed.status().message(), "media/ cannot be opened: Too many open files");
}

TEST_F(FolderTest, RefusesASiblingWithTheSamePrefix) {
  const fs::path sibling = inside_.path().string() + "-more";
  fs::create_directory(sibling);
  fs::create_symlink(sibling, inside_.path() / "link");
  EXPECT_NE(ReadAll(Open(), "link").find("leads out"), std::string::npos);
  fs::remove_all(sibling);
}

TEST_F(FolderTest, RefusesOtherThanRegularFilesWithoutHanging) {
  ASSERT_EQ(mkfifo((inside_.path() / "pipe").c_str(), 0600), 0);
  const Folder folder = Open();
  EXPECT_EQ(ReadAll(folder, "pipe"), "pipe: is a pipe; a regular file is needed");
  EXPECT_EQ(ReadAll(folder, "media"), "media: is a folder; a regular file is needed");
}

TEST_F(FolderTest, NamesAMissingFile) {
  fs::create_symlink("nothing", inside_.path() / "dangling");
  fs::create_symlink("loop", inside_.path() / "loop");
  const Folder folder = Open();
  EXPECT_FALSE(folder.Has("none"));
  EXPECT_TRUE(folder.Has("dangling"));
  EXPECT_EQ(folder.OpenFile("none").status(), absl::NotFoundError("none: no such file"));
  EXPECT_EQ(folder.OpenFile("dangling").status(),
            absl::NotFoundError("dangling: is a link to a file that is not there; fetch that "
                                "file, as `git annex get` and `dvc pull` do, or put the file "
                                "itself there"));
  EXPECT_EQ(ReadAll(folder, "loop"), "loop: cannot be opened: Too many levels of symbolic links");
}

TEST_F(FolderTest, DoesNotNameAFolderThatCannotBeOpened) {
  EXPECT_EQ(Folder::Open(inside_.path() / "none").status(),
            absl::NotFoundError("the folder does not exist"));
  EXPECT_EQ(
      Folder::Open(inside_.path() / "plain").status(),
      absl::InvalidArgumentError("is a file, not a folder; a collection is a folder of files"));
  fs::create_symlink("loop", inside_.path() / "loop");
  EXPECT_EQ(
      Folder::Open(inside_.path() / "loop").status(),
      absl::InvalidArgumentError("the folder cannot be opened: Too many levels of symbolic links"));
}

TEST_F(FolderTest, AcceptsOnlyNamesInside) {
  for (const char* const name : {"a", "a.npy", "media/a.npy", "./a", "a..b", "...", "media/./a"}) {
    EXPECT_TRUE(Folder::IsInside(name)) << name;
  }
  for (const char* const name :
       {"", "/a", ".", "..", "../a", "media/../../a", "media/..", "media/.", "media/"}) {
    EXPECT_FALSE(Folder::IsInside(name)) << name;
  }
  EXPECT_FALSE(Folder::IsInside(std::string("a\0b", 3)));
}

TEST_F(FolderTest, ReportsAFileThatIsCutWhileItIsRead) {
  inside_.Write("big", std::string(1 << 20, 'x'));
  const Folder folder = Open();
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile("big");
  ASSERT_TRUE(source.ok());
  BufferedReader reader(**source);
  std::string some(1000, '\0');
  ASSERT_TRUE(reader.ReadExact(some).ok());
  ASSERT_EQ(truncate((inside_.path() / "big").c_str(), 300'000), 0);
  std::string rest((1 << 20) - 1000, '\0');
  EXPECT_EQ(reader.ReadExact(rest),
            base::Error(base::ErrorReason::kFilesChanged,
                        "big: ended at byte 300,000 of 1,048,576; it was cut while being read"));
}

TEST_F(FolderTest, ReadsNoFurtherThanTheCheckedSize) {
  const Folder folder = Open();
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = folder.OpenFile("plain");
  ASSERT_TRUE(source.ok());
  inside_.Write("plain", "hello and more");
  BufferedReader reader(**source);
  EXPECT_EQ(*reader.ReadSome(), "hello");
  EXPECT_EQ(*reader.ReadSome(), "");
}

TEST_F(FolderTest, PlansNoCollectionOfLinksThatLeadOut) {
  outside_.Write("content_vectors.npy", "x");
  fs::create_symlink(outside_.path() / "content_vectors.npy",
                     inside_.path() / "content_vectors.npy");
  EXPECT_EQ(std::string(PlanDataset(inside_.path(), Limits{}, inside_.path()).status().message()),
            "content_vectors.npy" + std::string(kLeadsOut));
}

// A plan, its load and its sample have the same bounds.
TEST_F(FolderTest, LoadsACollectionOfLinks) {
  const auto link = [&](const std::string& name, const std::string& bytes) {
    outside_.Write("blobs/" + name, bytes);
    fs::create_symlink(outside_.path() / "blobs" / name, inside_.path() / name);
  };
  link("content_vectors.npy", NpyFile({1, 0, 0, 1}, 2));
  link("metadata.jsonl", "{\"id\": \"a\"}\n{\"id\": \"b\"}\n");
  for (const fs::path& within : {fs::path(), outside_.path()}) {
    const auto plan = PlanDataset(inside_.path(), Limits{}, within);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(SampleDataset(*plan, Limits{}).ok());
    const auto dataset = LoadDataset(*plan, Limits{}, nullptr);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(dataset->ids.Id(1), "b");
    EXPECT_EQ(dataset->fingerprint, TakeFingerprint(inside_.path(), Limits{}, within).value());
  }
  EXPECT_FALSE(TakeFingerprint(inside_.path(), Limits{}, inside_.path()).ok());
}

}  // namespace
}  // namespace simile::data
