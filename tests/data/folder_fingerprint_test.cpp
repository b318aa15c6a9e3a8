#include "data/folder_fingerprint.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/load.h"
#include "data/sample_folder.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorReason;
using testing::HasSubstr;
using testing::StartsWith;

class FolderFingerprintTest : public testing::Test {
 protected:
  FolderFingerprintTest() { WriteSample(folder_); }

  FolderFingerprint Fingerprint() const {
    const absl::StatusOr<FolderFingerprint> fingerprint = TakeFingerprint(folder_.path(), Limits{});
    EXPECT_TRUE(fingerprint.ok()) << fingerprint.status();
    return fingerprint.value_or(FolderFingerprint{});
  }
  // Replaces a byte without any other change.
  void Overwrite(const std::string& name, char byte) const {
    std::fstream file(folder_.path() / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put(byte);
  }

  const ScratchFolder folder_;
};

TEST_F(FolderFingerprintTest, DescribesTheFileOfEveryRole) {
  const FolderFingerprint fingerprint = Fingerprint();
  const std::vector<SampleFile> files = SampleFiles();
  const auto of = [&](FileRole role) { return fingerprint.files[static_cast<std::size_t>(role)]; };
  EXPECT_EQ(of(FileRole::kSettings).display_name, "collection.json");
  EXPECT_EQ(of(FileRole::kVectors).display_name, "media/content_vectors.npy");
  EXPECT_EQ(of(FileRole::kInteractions).display_name, "users/interactions.jsonl");
  EXPECT_EQ(of(FileRole::kVectors).bytes, files[1].bytes.size());
  EXPECT_NE(of(FileRole::kVectors).inode, of(FileRole::kPayload).inode);
  EXPECT_GT(of(FileRole::kVectors).written_ns, 0);
  EXPECT_GE(of(FileRole::kVectors).changed_ns, of(FileRole::kVectors).written_ns);
}

TEST_F(FolderFingerprintTest, IsThatOfTheLoadUntilAFileChanges) {
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder_.path(), Limits{});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const absl::StatusOr<Dataset> dataset = LoadDataset(*plan, Limits{}, nullptr);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->fingerprint, Fingerprint());
  Overwrite("media/metadata.jsonl", ' ');
  EXPECT_NE(dataset->fingerprint, Fingerprint());
}

// Each change comes right after the fingerprint, within the clock tick of the file system, and most
// leave the size.
TEST_F(FolderFingerprintTest, DiffersAfterEveryChange) {
  const auto expect_change = [&](const char* what, const std::function<void()>& change) {
    const FolderFingerprint before = Fingerprint();
    EXPECT_EQ(Fingerprint(), before) << what;
    change();
    EXPECT_NE(Fingerprint(), before) << what;
  };
  for (const SampleFile& file : SampleFiles()) {
    expect_change(file.name.c_str(), [&] { Overwrite(file.name, file.bytes.back()); });
  }
  expect_change("another file of the same name and bytes", [&] {
    folder_.Write("new", SampleFiles()[2].bytes);
    fs::rename(folder_.path() / "new", folder_.path() / "media/metadata.jsonl");
  });
  expect_change("the time of an older file", [&] {
    fs::last_write_time(folder_.path() / "media/metadata.jsonl", fs::file_time_type::min());
  });
  expect_change("a file less", [&] { fs::remove(folder_.path() / "users/interactions.jsonl"); });
  expect_change("a file more", [&] { folder_.Write("users/interactions.jsonl", ""); });
  expect_change("a file of another name", [&] {
    fs::rename(folder_.path() / "users/user_ids.json", folder_.path() / "user_ids.json");
  });
}

TEST_F(FolderFingerprintTest, DoesNotDifferWithFilesOfNoRole) {
  const FolderFingerprint before = Fingerprint();
  folder_.Write("README", "other");
  EXPECT_EQ(Fingerprint(), before);
}

TEST_F(FolderFingerprintTest, NamesWhatIsMissing) {
  fs::remove(folder_.path() / "media/content_vectors.npy");
  EXPECT_THAT(std::string(TakeFingerprint(folder_.path(), Limits{}).status().message()),
              StartsWith("no vectors in the folder"));
}

// Loads the sample while `change` is made: before the first read or after the last one.
class ChangedFilesTest : public FolderFingerprintTest {
 protected:
  absl::Status LoadWhile(bool at_end, const std::function<void()>& change) const {
    const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder_.path(), Limits{});
    EXPECT_TRUE(plan.ok()) << plan.status();
    bool changed = false;
    return LoadDataset(*plan, Limits{},
                       [&](const ReadProgress& read) {
                         if (changed || (at_end && read.bytes_read < read.bytes_total)) return;
                         changed = true;
                         change();
                       })
        .status();
  }
};

TEST_F(ChangedFilesTest, EndTheLoadByName) {
  for (const bool at_end : {false, true}) {
    for (const SampleFile& file : SampleFiles()) {
      const absl::Status status =
          LoadWhile(at_end, [&] { Overwrite(file.name, file.bytes.back()); });
      EXPECT_EQ(status,
                base::Error(ErrorReason::kFilesChanged,
                            file.name + ": has changed since the load was planned; load again"));
    }
  }
}

TEST_F(ChangedFilesTest, DoNotEndTheLoadWhenTheirBytesStay) {
  for (const bool at_end : {false, true}) {
    for (const SampleFile& file : SampleFiles()) {
      const fs::path path = folder_.path() / file.name;
      EXPECT_EQ(LoadWhile(at_end,
                          [&] {
                            fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
                            fs::create_hard_link(path, path.string() + ".link");
                            fs::remove(path.string() + ".link");
                          }),
                absl::OkStatus())
          << file.name;
    }
  }
}

TEST_F(ChangedFilesTest, EndTheLoadWhenTheyLookInvalidMeanwhile) {
  const absl::Status status = LoadWhile(false, [&] {
    for (const SampleFile& file : SampleFiles()) {
      if (file.name != "collection.json") folder_.Write(file.name, "");
    }
  });
  EXPECT_EQ(status,
            base::Error(ErrorReason::kFilesChanged,
                        "media/content_vectors.npy: has changed since the load was planned; load "
                        "again"));
}

TEST_F(ChangedFilesTest, EndTheLoadWhenOneIsAddedOrGone) {
  const fs::path interactions = folder_.path() / "users/interactions.jsonl";
  EXPECT_EQ(LoadWhile(true, [&] { fs::remove(interactions); }),
            base::Error(ErrorReason::kFilesChanged,
                        "users/interactions.jsonl: has gone since the load was planned; load "
                        "again"));
  EXPECT_EQ(LoadWhile(true, [&] { folder_.Write("users/interactions.jsonl", ""); }),
            base::Error(ErrorReason::kFilesChanged,
                        "users/interactions.jsonl: has changed since the load was planned; load "
                        "again"));
  const absl::Status status =
      LoadWhile(true, [&] { fs::remove(folder_.path() / "media/content_vectors.npy"); });
  EXPECT_EQ(base::ReasonOf(status), ErrorReason::kFilesChanged);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no vectors in the folder"));
}

TEST_F(ChangedFilesTest, EndALoadWhosePlanIsOlder) {
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder_.path(), Limits{});
  ASSERT_TRUE(plan.ok()) << plan.status();
  folder_.Write("collection.json", "{\"metric\": \"dot\"}");
  EXPECT_EQ(LoadDataset(*plan, Limits{}, nullptr).status(),
            base::Error(ErrorReason::kFilesChanged,
                        "collection.json: has changed since the load was planned; load again"));
}

}  // namespace
}  // namespace simile::data
