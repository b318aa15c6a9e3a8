#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "files/npy_file.h"
#include "service/collection_changes_fixture.h"

namespace simile::service {
namespace {

using base::ErrorReason;
using engine::ChangeStage;
using engine::SnapshotPtr;
using testing::ElementsAre;
using testing::HasSubstr;

class CollectionFoldersTest : public CollectionChangesFixture {
 protected:
  // The same films as Write makes, with other vectors.
  void WriteShuffled(const std::string& folder, std::size_t row_count) const {
    Write(folder, row_count);
    std::vector<float> vectors;
    for (std::size_t row = 0; row < row_count; ++row) {
      vectors.insert(vectors.end(), {static_cast<float>(row * 7 % row_count + 1), 1});
    }
    std::ofstream(root_ / folder / "content_vectors.npy", std::ios::binary) << NpyFile(vectors, 2);
  }
};

// `b` begins as a copy of `a`, is reloaded, is edited, and is reloaded again.
TEST_F(CollectionFoldersTest, KeepsTheFolderOfEachGenerationBesideAnEqualCopy) {
  Write("a", 30);
  Write("b", 30);
  const SnapshotPtr first = MustMake(MakeLoad("a"));
  EXPECT_EQ(MustMake(MakeReload("b")), first) << "the same content";
  EXPECT_EQ(FolderServed(), "b") << "which the next reload reads";
  EXPECT_EQ(LoadedFrom(), "a");
  EXPECT_THAT(written_.str(), HasSubstr("change=reload folder=a next_reload_reads=b\n"));
  ChangeWaiter unread;
  EXPECT_EQ(*Make(MakeReload(), unread), first);
  EXPECT_THAT(unread.stages(), ElementsAre(ChangeStage::kWaiting)) << "b is known by its files";

  Write("b", 31);
  const SnapshotPtr second = MustMake(MakeReload());
  EXPECT_NE(second->id, first->id);
  EXPECT_EQ(FolderServed(), "b");
  EXPECT_EQ(LoadedFrom(), "b");
  EXPECT_EQ(RollbackId(), first->id);
  EXPECT_EQ(MustMake(Rollback())->id, first->id) << "from a, which nobody has touched";
  EXPECT_EQ(FolderServed(), "a") << "a reload would not bring the edited copy back";
  EXPECT_EQ(LoadedFrom(), "a");
}

TEST_F(CollectionFoldersTest, RollsBackToTheEqualCopyWhereTheFirstFolderIsGone) {
  Write("a", 30);
  Write("b", 30);
  Write("c", 31);
  const std::string first = MustMake(MakeLoad("a"))->id;
  MustMake(MakeReload("b"));
  MustMake(MakeReload("c"));
  std::filesystem::remove_all(root_ / "a");
  EXPECT_EQ(MustMake(Rollback())->id, first);
  EXPECT_EQ(FolderServed(), "b");
  EXPECT_EQ(LoadedFrom(), "b");
}

TEST_F(CollectionFoldersTest, NamesTheFolderThatALinkLedTo) {
  Write("a", 30);
  std::filesystem::create_directory_symlink(root_ / "a", root_ / "current");
  MustMake(MakeLoad("current"));
  EXPECT_EQ(FolderServed(), "current");
  EXPECT_EQ(LoadedFrom(), "a");
  Write("b", 30);
  std::filesystem::remove(root_ / "current");
  std::filesystem::create_directory_symlink(root_ / "b", root_ / "current");
  MustMake(MakeReload());
  EXPECT_EQ(FolderServed(), "current");
  EXPECT_EQ(LoadedFrom(), "a") << "b has the same content";
}

TEST_F(CollectionFoldersTest, AsksOfEveryReloadForTheLeastOverlap) {
  CollectionChanges strict({true, root_, 0.9},
                           {publisher_, store_, queue_, metrics_, log_, clock_, limits_});
  Write("a", 30);
  WriteShuffled("b", 30);
  ASSERT_TRUE(strict.LoadAtStart("films", root_ / "a").ok());
  EXPECT_FALSE(store_.Pin("films").value()->overlap.has_value()) << "it replaced nothing";
  std::filesystem::remove_all(root_ / "a");
  std::filesystem::rename(root_ / "b", root_ / "a");
  const Result refused = strict.ReloadServed("films");
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverlapTooLow);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("at least 90.0 % must"));
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
}

TEST_F(CollectionFoldersTest, SaysHowMuchOfTheAnswersStays) {
  Write("a", 30);
  WriteShuffled("b", 30);
  MustMake(MakeLoad("a"));
  const SnapshotPtr second = MustMake(MakeReload("b"));
  ASSERT_TRUE(second->overlap.has_value());
  EXPECT_GE(*second->overlap, 0);
  EXPECT_LT(*second->overlap, 1);
  EXPECT_THAT(written_.str(),
              HasSubstr(fmt::format("overlap=\"{:.1f} %\"", 100 * *second->overlap)));
  EXPECT_FALSE(MustMake(Rollback())->overlap.has_value());
}

// Collections that did not load at the start, on a server that runs without them.
class NotRequiredTest : public CollectionFoldersTest {
 protected:
  NotRequiredTest() {
    Write("bad", 30);
    std::ofstream(root_ / "bad" / "metadata.jsonl", std::ios::app) << "{\"id\": \"too many\"}\n";
    EXPECT_EQ(ReasonOf(lenient_.LoadAtStart("films", root_ / "bad")), ErrorReason::kInvalidFiles);
    EXPECT_EQ(store_.Get("films")->state, engine::CollectionState::kFailed);
  }
  void Mend() {
    std::filesystem::remove_all(root_ / "bad");
    Write("bad", 30);
  }
  Result MakeLeniently(const ChangeRequest& request) {
    ChangeWaiter waiting;
    const absl::Status started = lenient_.Start(request, waiting.Caller());
    if (!started.ok()) return started;
    return waiting.Await();
  }

  CollectionChanges lenient_{{true, root_, 0, false},
                             {publisher_, store_, queue_, metrics_, log_, clock_, limits_}};
};

TEST_F(NotRequiredTest, IsTriedAgainByTheOperator) {
  EXPECT_EQ(ReasonOf(lenient_.LoadAtStart("films", root_ / "bad")), ErrorReason::kInvalidFiles);
  EXPECT_EQ(store_.Get("films")->state, engine::CollectionState::kFailed);
  Mend();
  EXPECT_TRUE(lenient_.LoadAtStart("films", root_ / "bad").ok());
  EXPECT_TRUE(store_.Pin("films").ok());
}

TEST_F(NotRequiredTest, HasTheErrorOfTheLastReload) {
  std::filesystem::remove(root_ / "bad" / "content_vectors.npy");
  const Result reloaded = MakeLeniently(MakeReload());
  EXPECT_EQ(ReasonOf(reloaded), ErrorReason::kInvalidFiles);
  EXPECT_EQ(store_.Get("films")->problem.message(), reloaded.status().message());
  ChangeRequest expecting = MakeReload();
  expecting.expected_snapshot_id = std::string(32, '0');
  Mend();
  EXPECT_EQ(ReasonOf(MakeLeniently(expecting)), ErrorReason::kCollectionNotLoaded);
}

TEST_F(NotRequiredTest, HasTheErrorOfALoadOfAnotherFolder) {
  const Result loaded = MakeLeniently(MakeLoad("none"));
  EXPECT_EQ(ReasonOf(loaded), ErrorReason::kInvalidFiles);
  EXPECT_EQ(store_.Get("films")->state, engine::CollectionState::kFailed);
  EXPECT_EQ(store_.Get("films")->problem.message(), loaded.status().message());
  Mend();
  EXPECT_TRUE(MakeLeniently(MakeReload()).ok()) << "of the folder that the operator named";
}

TEST_F(NotRequiredTest, IsTriedAgainByAReload) {
  EXPECT_EQ(ReasonOf(MakeLeniently(MakeReload())), ErrorReason::kInvalidFiles);
  EXPECT_EQ(store_.Get("films")->state, engine::CollectionState::kFailed);
  Mend();
  EXPECT_TRUE(MakeLeniently(MakeReload()).ok());
  EXPECT_EQ(FolderServed(lenient_), "bad");
  EXPECT_TRUE(MakeLeniently(MakeReload()).ok()) << "an ordinary reload by now";
}

TEST_F(NotRequiredTest, IsReplacedByALoadOrAReloadOfAnotherFolder) {
  Write("good", 30);
  EXPECT_TRUE(MakeLeniently(MakeReload("good")).ok());
  EXPECT_EQ(FolderServed(lenient_), "good");
  EXPECT_EQ(ReasonOf(lenient_.LoadAtStart("books", root_ / "bad")), ErrorReason::kInvalidFiles);
  ChangeRequest load = MakeLoad("good");
  load.collection = "books";
  EXPECT_TRUE(MakeLeniently(load).ok());
}

TEST_F(NotRequiredTest, IsForgottenByAnUnload) {
  EXPECT_EQ(ReasonOf(MakeLeniently(Rollback())), ErrorReason::kCollectionNotLoaded);
  EXPECT_EQ(base::ReasonOf(lenient_.Unload("films", std::string(32, '0'))),
            ErrorReason::kCollectionNotLoaded);
  EXPECT_TRUE(lenient_.Unload("films", "").ok());
  EXPECT_EQ(ReasonOf(MakeLeniently(MakeReload())), ErrorReason::kCollectionNotFound);
}

}  // namespace
}  // namespace simile::service
