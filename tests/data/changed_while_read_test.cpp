// Files that change while a load reads them. The load fails, or its dataset is the folder as it was
// or as it is, never a part of each.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "data/load/load.h"
#include "data/sample_folder.h"
#include "files/scratch_folder.h"

namespace simile::data {
namespace {

namespace fs = std::filesystem;

// What is done to a file.
enum class Change : std::uint8_t { kOverwrite, kAppend, kTruncate, kRename, kTouch, kRemove };
constexpr int kChangeCount = 6;

// Other bytes of the same size, which are valid, too.
std::string Changed(const SampleFile& file) {
  if (file.name.ends_with(".npy"))
    return NpyFile(std::vector<float>(file.name[0] == 'm' ? 6 : 4, 2), 2);
  std::string bytes = file.bytes;
  for (char& letter : bytes) {
    if (letter == 'F' || letter == 'S' || letter == 'T') letter = 'X';
    if (letter == 'u' && file.name == "users/user_ids.json") letter = 'w';
  }
  return bytes;
}

void Make(Change change, const ScratchFolder& folder, const SampleFile& file) {
  const fs::path path = folder.path() / file.name;
  switch (change) {
    case Change::kOverwrite: {
      std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
      stream << Changed(file);
      return;
    }
    case Change::kAppend:
      std::ofstream(path, std::ios::app) << '\n';
      return;
    case Change::kTruncate:
      ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(file.bytes.size() / 2)), 0);
      return;
    case Change::kRename:
      folder.Write("new", Changed(file));
      fs::rename(folder.path() / "new", path);
      return;
    case Change::kTouch:
      fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
      return;
    case Change::kRemove:
      fs::remove(path);
      return;
  }
}

std::string IdNow(const ScratchFolder& folder) {
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder.path(), Limits{});
  if (!plan.ok()) return "";
  const absl::StatusOr<Dataset> dataset = LoadDataset(*plan, Limits{}, nullptr);
  return dataset.ok() ? dataset->content_id : "";
}

// Loads the sample once while one file changes at a read that `random` chooses. Returns whether the
// load succeeded.
bool LoadOnceWhileAFileChanges(std::mt19937& random) {
  const ScratchFolder folder;
  WriteSample(folder);
  const std::string before = IdNow(folder);
  const std::vector<SampleFile> files = SampleFiles();
  const SampleFile& file = files[random() % files.size()];
  const auto change = static_cast<Change>(random() % kChangeCount);
  const int at_read = static_cast<int>(random() % 8);
  const absl::StatusOr<DatasetPlan> plan = PlanDataset(folder.path(), Limits{});
  EXPECT_TRUE(plan.ok()) << plan.status();
  int read = 0;
  bool is_made = false;
  const absl::StatusOr<Dataset> dataset =
      LoadDataset(*plan, Limits{}, [&](const ReadProgress& progress) {
        // The last report comes when everything was checked.
        if (is_made || progress.file.empty() || read++ < at_read) return;
        is_made = true;
        Make(change, folder, file);
      });
  const std::string what = file.name + ", change " + std::to_string(static_cast<int>(change)) +
                           ", read " + std::to_string(at_read);
  if (dataset.ok()) {
    EXPECT_FALSE(is_made) << what;
    EXPECT_EQ(dataset->content_id, before) << what;
    return true;
  }
  EXPECT_EQ(base::ReasonOf(dataset.status()), base::ErrorReason::kFilesChanged)
      << what << ": " << dataset.status();
  return false;
}

// The waits for the file system's clock run side by side.
TEST(ChangedWhileReadTest, NeverGivesAMixedCollection) {
  constexpr int kLoads = 1'000;
  constexpr int kThreads = 16;
  std::atomic<int> next = 0;
  std::atomic<int> ended = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int load = next++; load < kLoads; load = next++) {
        std::mt19937 random(static_cast<unsigned>(load));
        if (!LoadOnceWhileAFileChanges(random)) ++ended;
      }
    });
  }
  threads.clear();
  EXPECT_GT(ended, kLoads / 2);
}

}  // namespace
}  // namespace simile::data
