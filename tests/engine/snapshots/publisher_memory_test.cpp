#include <cstddef>
#include <filesystem>
#include <new>
#include <string>

#include <gtest/gtest.h>

#include "engine/fake_backend.h"
#include "engine/fake_clock.h"
#include "engine/snapshots/publisher.h"
#include "files/film_folder.h"
#include "files/scratch_folder.h"
#include "memory/watched_memory.h"

namespace simile::engine {
namespace {

constexpr std::size_t kRowsOfA = 3;

// Publishes while one allocation after the other fails: of reading, the index, its verification and
// the swap.
class PublisherMemoryTest : public testing::Test {
 protected:
  PublisherMemoryTest() {
    WriteFilmFolder(root_ / "a", kRowsOfA, 1);
    WriteFilmFolder(root_ / "b", kRowsOfA + 1, 1);
  }

  Publisher::Change ChangeTo(const std::string& folder) const {
    Publisher::Change change;
    change.collection = "films";
    change.folder = root_ / folder;
    return change;
  }
  // Whether the change succeeds without this allocation, counted from 1. `failed` says whether
  // there was one.
  template <class Step>
  static bool SucceedsWithout(std::size_t allocation, const Step& step, bool& failed) {
    const tests::WatchedMemory memory(tests::WatchedMemory::Of::kThisThread, allocation);
    bool succeeded = false;
    try {
      succeeded = step().ok();
    } catch (const std::bad_alloc&) {
    }
    failed = memory.has_failed();
    return succeeded;
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  FakeClock clock_;
  FakeBackend backend_;
  SnapshotStore store_{clock_};
  Publisher publisher_{{{}, 64U << 20}, backend_, store_, clock_};
};

TEST_F(PublisherMemoryTest, CreatesOrLeavesNothingBehind) {
  std::size_t failures = 0;
  bool failed = true;
  for (std::size_t allocation = 1; failed; ++allocation) {
    const bool created = SucceedsWithout(
        allocation, [&] { return publisher_.Create(ChangeTo("a")); }, failed);
    ASSERT_EQ(store_.Pin("films").ok(), created) << allocation;
    ASSERT_EQ(store_.List().size(), created ? 1U : 0U) << allocation;
    failures += created ? 0 : 1;
    ASSERT_EQ(store_.Remove("films").ok(), created) << allocation;
  }
  EXPECT_GT(failures, 10U);
}

TEST_F(PublisherMemoryTest, ReplacesOrServesTheFormerSnapshot) {
  ASSERT_TRUE(publisher_.Create(ChangeTo("a")).ok());
  std::size_t failures = 0;
  bool failed = true;
  for (std::size_t allocation = 1; failed; ++allocation) {
    const SnapshotPtr before = store_.Pin("films").value();
    const Publisher::Change change = ChangeTo(before->row_count() == kRowsOfA ? "b" : "a");
    const bool replaced = SucceedsWithout(
        allocation, [&] { return publisher_.Replace(change); }, failed);
    const CollectionStatus status = store_.Get("films").value();
    ASSERT_EQ(status.state, CollectionState::kServing) << allocation;
    ASSERT_EQ(status.snapshot->version, before->version + (replaced ? 1 : 0)) << allocation;
    failures += replaced ? 0 : 1;
  }
  EXPECT_GT(failures, 10U);
}

TEST_F(PublisherMemoryTest, RestoresOrServesTheFormerSnapshot) {
  const auto first = publisher_.Create(ChangeTo("a"));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(publisher_.Replace(ChangeTo("b")).ok());
  std::size_t failures = 0;
  bool failed = true;
  for (std::size_t allocation = 1; failed; ++allocation) {
    const SnapshotPtr before = store_.Pin("films").value();
    const bool restored = SucceedsWithout(
        allocation, [&] { return publisher_.Restore("films", *first->snapshot); }, failed);
    const CollectionStatus status = store_.Get("films").value();
    ASSERT_EQ(status.state, CollectionState::kServing) << allocation;
    ASSERT_EQ(status.snapshot->version, before->version + (restored ? 1 : 0)) << allocation;
    failures += restored ? 0 : 1;
  }
  EXPECT_GT(failures, 0U);
}

}  // namespace
}  // namespace simile::engine
