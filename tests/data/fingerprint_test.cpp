#include "data/load/fingerprint.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/load/load.h"
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

namespace fs = std::filesystem;
using testing::MatchesRegex;

std::string LoadContentId(const fs::path& folder) {
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder, Limits{});
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  const absl::StatusOr<Dataset> dataset = LoadDataset(*plan, Limits{}, nullptr);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return dataset.ok() ? dataset->content_id : "";
}

std::string IdOfSample() {
  const ScratchFolder folder;
  WriteSample(folder);
  return LoadContentId(folder.path());
}

// The id of files with these bytes, given in parts of `step` bytes.
std::string BuiltId(const std::vector<SampleFile>& files, const std::vector<FileRole>& roles,
                    std::size_t step) {
  ContentIdBuilder builder;
  for (std::size_t i = 0; i < files.size(); ++i) {
    builder.AddFile(roles[i]);
    for (std::string_view rest = files[i].bytes; !rest.empty();
         rest.remove_prefix(std::min(step, rest.size()))) {
      builder.AddBytes(roles[i], rest.substr(0, step));
    }
  }
  return builder.Id();
}

const std::vector<FileRole> kRoles = {FileRole::kSettings,    FileRole::kVectors,
                                      FileRole::kPayload,     FileRole::kUserIds,
                                      FileRole::kUserVectors, FileRole::kInteractions};

// Callers keep the content id, and compare it between servers of different builds. It must not
// change by accident. See kFormat in fingerprint.cpp.
constexpr const char* kIdOfSample = "c88d61351251734e8066cfcae1acf188";

TEST(ContentIdTest, IsThatOfTheBytesAndRolesWhereverAndWheneverTheyAreLoaded) {
  const ScratchFolder folder;
  WriteSample(folder);
  EXPECT_EQ(LoadContentId(folder.path()), kIdOfSample);
  EXPECT_EQ(LoadContentId(folder.path()), kIdOfSample) << "a second load";
  EXPECT_EQ(IdOfSample(), kIdOfSample) << "a copy elsewhere";
  EXPECT_THAT(kIdOfSample, MatchesRegex("[0-9a-f]{32}"));
}

TEST(ContentIdTest, DoesNotDependOnTheNamesOfFiles) {
  const ScratchFolder folder;
  for (const SampleFile& file : SampleFiles()) {
    folder.Write(fs::path(file.name).filename().string(), file.bytes);
  }
  fs::rename(folder.path() / "content_vectors.npy", folder.path() / "vectors.npy");
  EXPECT_EQ(LoadContentId(folder.path()), kIdOfSample);
}

TEST(ContentIdTest, DiffersWithEveryFile) {
  std::set<std::string> ids = {kIdOfSample};
  for (const SampleFile& file : SampleFiles()) {
    const ScratchFolder folder;
    WriteSample(folder);
    std::string bytes = file.bytes;
    // A bit that leaves each file valid: in its header's padding, or its last line end.
    if (file.name.ends_with(".npy")) {
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
    } else {
      bytes.back() = bytes.back() == '\n' ? ' ' : '\n';
    }
    folder.Write(file.name, bytes);
    EXPECT_TRUE(ids.insert(LoadContentId(folder.path())).second) << file.name;
  }
}

TEST(ContentIdTest, DiffersWithoutAFile) {
  const ScratchFolder folder;
  WriteSample(folder);
  fs::remove(folder.path() / "users/interactions.jsonl");
  const std::string without = LoadContentId(folder.path());
  EXPECT_NE(without, kIdOfSample);
  folder.Write("users/interactions.jsonl", "");
  EXPECT_NE(LoadContentId(folder.path()), without) << "an empty file is a file";
}

TEST(ContentIdTest, DiffersWithEveryBit) {
  const std::vector<SampleFile> files = SampleFiles();
  std::set<std::string> ids = {BuiltId(files, kRoles, 4096)};
  std::size_t bits = 0;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (std::size_t bit = 0; bit < 8 * files[file].bytes.size(); ++bit) {
      std::vector<SampleFile> changed = files;
      changed[file].bytes[bit / 8] = static_cast<char>(changed[file].bytes[bit / 8] ^ 1 << bit % 8);
      ids.insert(BuiltId(changed, kRoles, 4096));
      ++bits;
    }
  }
  EXPECT_EQ(ids.size(), bits + 1);
}

TEST(ContentIdTest, DoesNotDependOnHowTheBytesAreRead) {
  for (const std::size_t step : {1U, 7U, 64U, 1'000U}) {
    EXPECT_EQ(BuiltId(SampleFiles(), kRoles, step), kIdOfSample) << step;
  }
}

TEST(ContentIdTest, DiffersWhenFilesSwapTheirRoles) {
  std::set<std::string> ids = {kIdOfSample};
  for (std::size_t a = 0; a < kRoles.size(); ++a) {
    for (std::size_t b = a + 1; b < kRoles.size(); ++b) {
      std::vector<FileRole> swapped = kRoles;
      std::swap(swapped[a], swapped[b]);
      EXPECT_TRUE(ids.insert(BuiltId(SampleFiles(), swapped, 64)).second) << a << " " << b;
    }
  }
}

TEST(ContentIdTest, DiffersWhenBytesMoveFromFileToFile) {
  const std::vector<FileRole> roles = {FileRole::kVectors, FileRole::kPayload};
  EXPECT_NE(BuiltId({{"", "ab"}, {"", "c"}}, roles, 8), BuiltId({{"", "a"}, {"", "bc"}}, roles, 8));
  EXPECT_NE(BuiltId({{"", "ab"}, {"", ""}}, roles, 8), BuiltId({{"", "ab"}}, {roles[0]}, 8));
}

// Bytes that no reader needs: before and after the tensor that is served, and in a member that has
// no meaning.
TEST(ContentIdTest, CoversBytesThatAreSkipped) {
  const auto id_with = [](char before, char after, const std::string& interactions) {
    const ScratchFolder folder;
    std::string header =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[0,4]},"
        "\"v\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[4,12]},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[12,16]}}";
    header.resize(256, ' ');
    std::string file = std::string("\0\1\0\0\0\0\0\0", 8) + header;
    file += std::string(4, before);
    const std::array<float, 2> rows = {1, 2};
    file.append(reinterpret_cast<const char*>(rows.data()), sizeof(rows));
    file += std::string(4, after);
    folder.Write("vectors.safetensors", file);
    folder.Write("collection.json", "{\"tensor\": \"v\"}");
    folder.Write("interactions.jsonl", "{\"id\": \"0\", \"note\": \"" + interactions + "\"}");
    return LoadContentId(folder.path());
  };
  const std::string id = id_with('x', 'y', "one");
  EXPECT_EQ(id_with('x', 'y', "one"), id);
  EXPECT_NE(id_with('X', 'y', "one"), id);
  EXPECT_NE(id_with('x', 'Y', "one"), id);
  EXPECT_NE(id_with('x', 'y', "two"), id);
}

}  // namespace
}  // namespace simile::data
