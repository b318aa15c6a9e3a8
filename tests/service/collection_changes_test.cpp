#include "service/changes/collection_changes.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "files/film_folder.h"
#include "files/scratch_folder.h"
#include "google/rpc/status.pb.h"
#include "service/collection_changes_fixture.h"
#include "service/replies/error_encoding.h"

namespace simile::service {
namespace {

using base::ErrorReason;
using engine::ChangeProgress;
using engine::ChangeStage;
using engine::SnapshotPtr;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Waiting = ChangeWaiter;

class CollectionChangesTest : public CollectionChangesFixture {};

TEST_F(CollectionChangesTest, LoadsAFolderOfTheDataRoot) {
  Write("a", 30);
  Waiting waiting;
  const Result loaded = Make(MakeLoad("a/"), waiting);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->row_count(), 30U);
  EXPECT_EQ((*loaded)->version, 1U);
  EXPECT_EQ(store_.Pin("films").value(), *loaded);
  EXPECT_EQ(FolderServed(), "a");
  EXPECT_EQ(RollbackId(), "");
  EXPECT_EQ(waiting.stages().front(), ChangeStage::kWaiting);
  EXPECT_THAT(waiting.stages(), Contains(ChangeStage::kReading));
  EXPECT_EQ(waiting.stages().back(), ChangeStage::kVerifying);
  EXPECT_EQ(Counted("published"), "1");
}

TEST_F(CollectionChangesTest, SaysThatAFileWasCutWhileItWasRead) {
  Write("a", 30'000);
  Waiting waiting;
  ChangeCaller caller = waiting.Caller();
  bool was_cut = false;
  caller.progress = [&](const ChangeProgress& progress) {
    clock_.Advance(std::chrono::seconds(1));  // so that the next one is sent too
    if (progress.bytes_read == 0 || std::exchange(was_cut, true)) return;
    std::filesystem::resize_file(root_ / "a" / "metadata.jsonl", 1'000);
  };
  ASSERT_TRUE(changes_.Start(MakeLoad("a"), std::move(caller)).ok());
  const Result result = waiting.Await();
  EXPECT_TRUE(was_cut);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(ReasonOf(result), ErrorReason::kFilesChanged);
  EXPECT_EQ(EncodeError(result.status(), "7").message(),
            "metadata.jsonl: has changed since the load was planned; load again");
  EXPECT_EQ(ReasonOf(store_.Pin("films")), ErrorReason::kCollectionNotFound);
  EXPECT_EQ(ReasonOf(Make(MakeLoad("a"))), ErrorReason::kInvalidFiles) << "it stays cut";
}

TEST_F(CollectionChangesTest, LoadsOnceForAllWhoAsk) {
  Write("a", 30);
  Waiting first;
  Waiting second;
  Waiting third;
  Hold(MakeLoad("a"), first);
  ASSERT_TRUE(changes_.Start(MakeLoad("a"), second.Caller()).ok());
  ASSERT_TRUE(changes_.Start(MakeLoad("a/"), third.Caller()).ok());
  EXPECT_TRUE(changes_.AnyUnderWay());
  backend_.gate.Open();
  const Result loaded = first.Await();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(second.Await().value(), *loaded);
  EXPECT_EQ(third.Await().value(), *loaded);
  EXPECT_EQ(backend_.segments_made, 1U);
  EXPECT_EQ(Counted("published"), "1");
  EXPECT_EQ(second.stages().front(), ChangeStage::kIndexing) << "how far it was";
}

TEST_F(CollectionChangesTest, GoesOnWhenItsCallerLeaves) {
  Write("a", 30);
  Waiting leaves;
  Hold(MakeLoad("a"), leaves);
  leaves.Leave();
  Waiting again;
  ASSERT_TRUE(changes_.Start(MakeLoad("a"), again.Caller()).ok());
  EXPECT_EQ(ReasonOf(leaves.Await()), ErrorReason::kCancelled);
  backend_.gate.Open();
  EXPECT_EQ(again.Await().value()->version, 1U);
  EXPECT_EQ(backend_.segments_made, 1U);
}

TEST_F(CollectionChangesTest, RefusesAnotherChangeMeanwhile) {
  Write("a", 30);
  Write("b", 31);
  Waiting waiting;
  Hold(MakeLoad("a"), waiting);
  EXPECT_EQ(ReasonOf(Make(MakeLoad("b"))), ErrorReason::kChangeInProgress);
  EXPECT_EQ(ReasonOf(Make(MakeReload())), ErrorReason::kChangeInProgress);
  EXPECT_EQ(ReasonOf(Make(Rollback())), ErrorReason::kChangeInProgress);
  EXPECT_EQ(base::ReasonOf(changes_.Unload("films", "")), ErrorReason::kChangeInProgress);
  backend_.gate.Open();
  EXPECT_TRUE(waiting.Await().ok());
  EXPECT_TRUE(Make(MakeReload("b")).ok());
}

TEST_F(CollectionChangesTest, ReadsNothingWhenTheFilesAreServedAlready) {
  Write("a", 30);
  const SnapshotPtr loaded = MustMake(MakeLoad("a"));
  for (const ChangeRequest& again : {MakeLoad("a"), MakeReload(), MakeReload("a")}) {
    Waiting waiting;
    EXPECT_EQ(Make(again, waiting).value(), loaded);
    EXPECT_THAT(waiting.stages(), ElementsAre(ChangeStage::kWaiting));
  }
  EXPECT_EQ(Counted("published"), "1");
  EXPECT_EQ(RollbackId(), "");
}

TEST_F(CollectionChangesTest, DoesNotPublishTheSameContentOfOtherFiles) {
  Write("a", 30);
  Write("b", 30);
  const SnapshotPtr loaded = MustMake(MakeLoad("a"));
  Waiting reads;
  EXPECT_EQ(Make(MakeReload("b"), reads).value(), loaded);
  EXPECT_THAT(reads.stages(), Contains(ChangeStage::kReading));
  EXPECT_EQ(FolderServed(), "b");
  EXPECT_EQ(RollbackId(), "");
  Waiting again;
  EXPECT_EQ(Make(MakeReload(), again).value(), loaded);
  EXPECT_THAT(again.stages(), ElementsAre(ChangeStage::kWaiting));
  EXPECT_EQ(backend_.segments_made, 1U);
}

TEST_F(CollectionChangesTest, RefusesToLoadOtherFilesUnderTheName) {
  Write("a", 30);
  Write("b", 31);
  MustMake(MakeLoad("a"));
  EXPECT_EQ(ReasonOf(Make(MakeLoad("b"))), ErrorReason::kCollectionExists);
  Write("a", 31);
  EXPECT_EQ(ReasonOf(Make(MakeLoad("a"))), ErrorReason::kCollectionExists);
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
}

TEST_F(CollectionChangesTest, ReloadsFromAnotherFolderAndThenFromThat) {
  Write("a", 30);
  Write("b", 31);
  const SnapshotPtr first = MustMake(MakeLoad("a"));
  EXPECT_EQ(MustMake(MakeReload("b"))->row_count(), 31U);
  EXPECT_EQ(FolderServed(), "b");
  EXPECT_EQ(RollbackId(), first->id);
  Write("b", 32);
  const SnapshotPtr third = MustMake(MakeReload());
  EXPECT_EQ(third->row_count(), 32U);
  EXPECT_EQ(third->version, 3U);
}

TEST_F(CollectionChangesTest, FollowsALinkToTheFolderOfTheDay) {
  Write("1", 30);
  Write("2", 31);
  std::filesystem::create_directory_symlink("1", root_ / "today");
  MustMake(MakeLoad("today"));
  std::filesystem::remove(root_ / "today");
  std::filesystem::create_directory_symlink("2", root_ / "today");
  EXPECT_EQ(MustMake(MakeReload())->row_count(), 31U);
  EXPECT_EQ(MustMake(Rollback())->row_count(), 30U) << "what the link led to at the time";
  EXPECT_EQ(MustMake(MakeReload())->row_count(), 31U);
}

TEST_F(CollectionChangesTest, RollsBackInMemoryWhileTheGenerationIsThere) {
  Write("a", 30);
  Write("b", 31);
  const SnapshotPtr first = MustMake(MakeLoad("a"));
  store_.Lease(*first, std::chrono::seconds(60));
  MustMake(MakeReload("b"));
  std::filesystem::remove_all(root_ / "a");
  Waiting waiting;
  const Result back = Make(Rollback(), waiting);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)->dataset, first->dataset);
  EXPECT_EQ((*back)->version, 3U);
  EXPECT_THAT(waiting.stages(), ElementsAre(ChangeStage::kWaiting));
  EXPECT_EQ(FolderServed(), "a");
  EXPECT_EQ(RollbackId(), "");
}

TEST_F(CollectionChangesTest, RollsBackByReadingTheFolderAgain) {
  Write("a", 30);
  Write("b", 31);
  const std::string first = MustMake(MakeLoad("a"))->id;
  MustMake(MakeReload("b"));
  Waiting waiting;
  const Result back = Make(Rollback(), waiting);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)->id, first);
  EXPECT_EQ((*back)->version, 3U);
  EXPECT_THAT(waiting.stages(), Contains(ChangeStage::kReading));
  EXPECT_EQ(backend_.segments_made, 3U);
  EXPECT_EQ(RollbackId(), "");
  EXPECT_EQ(Counted("published"), "3");
}

TEST_F(CollectionChangesTest, RollsBackOnceHoweverOftenItIsAsked) {
  Write("a", 30);
  Write("b", 31);
  MustMake(MakeLoad("a"));
  const std::string second = MustMake(MakeReload("b"))->id;
  const SnapshotPtr back = MustMake(Rollback());
  ChangeRequest again = Rollback();
  again.expected_snapshot_id = second;  // as the first call had it
  EXPECT_EQ(MustMake(again), back);
  EXPECT_EQ(MustMake(Rollback()), back);
  EXPECT_EQ(store_.Pin("films").value()->version, 3U);

  EXPECT_EQ(MustMake(MakeReload("b"))->id, second);
  EXPECT_EQ(RollbackId(), back->id);
  EXPECT_EQ(MustMake(Rollback())->id, back->id) << "another change was made";
}

TEST_F(CollectionChangesTest, RollsBackOnlyWhenSomethingElseWasServed) {
  Write("a", 30);
  MustMake(MakeLoad("a"));
  EXPECT_EQ(ReasonOf(Make(Rollback())), ErrorReason::kNothingToRollBack);
  MustMake(MakeReload());
  EXPECT_EQ(ReasonOf(Make(Rollback())), ErrorReason::kNothingToRollBack);
  ChangeRequest unknown = Rollback();
  unknown.collection = "film";
  const Result result = Make(unknown);
  EXPECT_EQ(ReasonOf(result), ErrorReason::kCollectionNotFound);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("Did you mean \"films\"?"));
}

// Ways in which the folder of the earlier generation comes to hold other content.
struct Spoiling {
  const char* name;
  void (*spoil)(const std::filesystem::path& folder);
};
void PrintTo(const Spoiling& spoiling, std::ostream* out) { *out << spoiling.name; }

class SpoiledFolderTest : public CollectionChangesTest,
                          public testing::WithParamInterface<Spoiling> {};

TEST_P(SpoiledFolderTest, IsNotRolledBackTo) {
  Write("a", 30);
  Write("b", 30, 2);
  MustMake(MakeLoad("a"));
  MustMake(MakeReload("b"));
  GetParam().spoil(root_ / "a");
  const Result refused = Make(Rollback());
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kNothingToRollBack) << refused.status();
  EXPECT_EQ(base::FieldOf(refused.status()), "collection");
  const std::string message(refused.status().message());
  EXPECT_THAT(message, Not(HasSubstr(root_.string())));
  EXPECT_THAT(message, HasSubstr("To keep a way back, write changes into a new folder and reload "
                                 "that"));
  const engine::CollectionStatus status = store_.Get("films").value();
  EXPECT_EQ(status.state, engine::CollectionState::kServing);
  EXPECT_EQ(status.snapshot->version, 2U);
  EXPECT_EQ(FolderServed(), "b");
  EXPECT_NE(RollbackId(), "") << "the files may come back";
  WriteFilmFolder(root_ / "a", 30, 1);
  EXPECT_TRUE(Make(Rollback()).ok());
}

INSTANTIATE_TEST_SUITE_P(
    CollectionChangesTest, SpoiledFolderTest,
    testing::Values(
        Spoiling{"OtherSize", [](const auto& folder) { WriteFilmFolder(folder, 31, 1); }},
        Spoiling{"OtherBytes", [](const auto& folder) { WriteFilmFolder(folder, 30, 3); }},
        Spoiling{"WhatIsServed", [](const auto& folder) { WriteFilmFolder(folder, 30, 2); }},
        Spoiling{
            "NoVectors",
            [](const auto& folder) { std::filesystem::remove(folder / "content_vectors.npy"); }},
        Spoiling{"BadHeader",
                 [](const auto& folder) {
                   std::fstream(folder / "content_vectors.npy") << "something else";
                 }},
        Spoiling{"Gone", [](const auto& folder) { std::filesystem::remove_all(folder); }}),
    [](const auto& spoiling) { return spoiling.param.name; });

TEST_F(CollectionChangesTest, RollsBackNothingWhenItsFolderWasWrittenOver) {
  Write("a", 30);
  MustMake(MakeLoad("a"));
  Write("a", 30, 2);
  MustMake(MakeReload());
  Waiting waiting;
  EXPECT_EQ(ReasonOf(Make(Rollback(), waiting)), ErrorReason::kNothingToRollBack);
  EXPECT_THAT(waiting.stages(), ElementsAre(ChangeStage::kWaiting)) << "without reading";
}

TEST_F(CollectionChangesTest, ChangesTheShapeOnlyWhenAllowed) {
  Write("a", 30);
  Write("b", 30);
  std::ofstream(root_ / "b" / "collection.json") << "{\"metric\": \"dot\"}";
  const std::string first = MustMake(MakeLoad("a"))->id;
  ChangeRequest reload = MakeReload("b");
  EXPECT_EQ(ReasonOf(Make(reload)), ErrorReason::kShapeChange);
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
  reload.allow_shape_change = true;
  const SnapshotPtr second = MustMake(reload);
  EXPECT_EQ(second->dataset->metric, Metric::kDot);

  ChangeRequest rollback = Rollback();
  EXPECT_EQ(ReasonOf(Make(rollback)), ErrorReason::kShapeChange) << "from its folder";
  rollback.allow_shape_change = true;
  store_.Lease(*second, std::chrono::seconds(60));
  EXPECT_EQ(MustMake(rollback)->id, first);
  MustMake(reload);
  store_.Lease(**store_.Pin("films"), std::chrono::seconds(60));
  EXPECT_EQ(MustMake(rollback)->id, first);
}

// Both folders have the same items, but each item has another order of nearest items.
TEST_F(CollectionChangesTest, AReloadReplacesTheServersMinimumOfOverlap) {
  CollectionChanges changes({.allowed_over_wire = true, .data_root = root_, .min_overlap = 0.9},
                            {publisher_, store_, queue_, metrics_, log_, clock_, limits_});
  const auto make = [&](const ChangeRequest& request) {
    Waiting waiting;
    const absl::Status started = changes.Start(request, waiting.Caller());
    return started.ok() ? waiting.Await() : Result(started);
  };
  Write("a", 60);
  Write("b", 60, 1'000);
  ASSERT_TRUE(make(MakeLoad("a")).ok());
  ChangeRequest reload = MakeReload("b");
  const Result refused = make(reload);
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverlapTooLow);
  EXPECT_THAT(
      std::string(refused.status().message()),
      HasSubstr("at least 90.0 % must stay. The former snapshot is still served. If that much "
                "change is intended, reload with a smaller min_overlap; 0 accepts any"));
  reload.min_overlap = 0.95;
  EXPECT_THAT(std::string(make(reload).status().message()), HasSubstr("at least 95.0 % must"));
  for (const double outside : {-0.1, 1.1, std::nan("")}) {
    reload.min_overlap = outside;
    EXPECT_EQ(ReasonOf(make(reload)), ErrorReason::kInvalidField);
  }
  reload.min_overlap = 0;
  EXPECT_TRUE(make(reload).ok());
}

TEST_F(CollectionChangesTest, ChecksTheShapeOfAGenerationInMemory) {
  Write("a", 30);
  Write("b", 30);
  std::ofstream(root_ / "b" / "collection.json") << "{\"metric\": \"dot\"}";
  store_.Lease(*MustMake(MakeLoad("a")), std::chrono::seconds(60));
  ChangeRequest reload = MakeReload("b");
  reload.allow_shape_change = true;
  MustMake(reload);
  ChangeRequest rollback = Rollback();
  EXPECT_EQ(ReasonOf(Make(rollback)), ErrorReason::kShapeChange);
  rollback.allow_shape_change = true;
  EXPECT_TRUE(Make(rollback).ok());
  EXPECT_EQ(backend_.segments_made, 2U);
}

TEST_F(CollectionChangesTest, ChecksTheContentThatTheCallerExpects) {
  Write("a", 30);
  Write("b", 31);
  const std::string first = MustMake(MakeLoad("a"))->id;
  ChangeRequest reload = MakeReload("b");
  reload.expected_snapshot_id = std::string(32, '0');
  const Result refused = Make(reload);
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kSnapshotMismatch);
  EXPECT_EQ(base::FieldOf(refused.status()), "expected_snapshot_id");
  reload.expected_snapshot_id = first;
  const SnapshotPtr second = MustMake(reload);
  EXPECT_EQ(MustMake(reload), second) << "served already, so the repeated call succeeds";

  ChangeRequest rollback = Rollback();
  rollback.expected_snapshot_id = first;
  EXPECT_EQ(ReasonOf(Make(rollback)), ErrorReason::kSnapshotMismatch);
  EXPECT_EQ(base::ReasonOf(changes_.Unload("films", first)), ErrorReason::kSnapshotMismatch);
  rollback.expected_snapshot_id = second->id;
  EXPECT_EQ(MustMake(rollback)->id, first);
  EXPECT_TRUE(changes_.Unload("films", first).ok());
}

TEST_F(CollectionChangesTest, KnowsWhetherTheLastLoadOfACollectionFailed) {
  Write("a", 30);
  Write("bad", 30);
  std::ofstream(root_ / "bad" / "metadata.jsonl", std::ios::app) << "{\"id\": \"one too many\"}\n";
  EXPECT_EQ(ReasonOf(Make(MakeLoad("bad"))), ErrorReason::kInvalidFiles);
  EXPECT_FALSE(changes_.LastLoadFailed("films")) << "it is not served";
  MustMake(MakeLoad("a"));
  EXPECT_FALSE(changes_.LastLoadFailed("films"));
  const auto fail = [&] {
    EXPECT_EQ(ReasonOf(Make(MakeReload("bad"))), ErrorReason::kInvalidFiles);
    EXPECT_TRUE(changes_.LastLoadFailed("films"));
  };
  fail();
  ChangeRequest other = MakeLoad("a");
  other.collection = "books";
  MustMake(other);
  EXPECT_FALSE(changes_.LastLoadFailed("books"));
  EXPECT_TRUE(changes_.LastLoadFailed("films"));
  MustMake(MakeReload());
  EXPECT_FALSE(changes_.LastLoadFailed("films")) << "unchanged files are good files";
  Write("b", 31);
  MustMake(MakeReload("b"));
  fail();
  MustMake(Rollback());
  EXPECT_FALSE(changes_.LastLoadFailed("films"));
  fail();
  EXPECT_TRUE(changes_.Unload("films", "").ok());
  EXPECT_FALSE(changes_.LastLoadFailed("films"));
}

TEST_F(CollectionChangesTest, KeepsServingAfterAFailure) {
  Write("a", 30);
  Write("bad", 30);
  std::ofstream(root_ / "bad" / "metadata.jsonl", std::ios::app) << "{\"id\": \"one too many\"}\n";
  const SnapshotPtr first = MustMake(MakeLoad("a"));
  EXPECT_EQ(ReasonOf(Make(MakeReload("bad"))), ErrorReason::kInvalidFiles);
  EXPECT_EQ(ReasonOf(Make(MakeReload("none"))), ErrorReason::kInvalidFiles);
  EXPECT_EQ(ReasonOf(Make(MakeReload("../a"))), ErrorReason::kOutsideDataRoot);
  Write("b", 31);
  backend_.out_of_memory = true;
  EXPECT_EQ(ReasonOf(Make(MakeReload("b"))), ErrorReason::kDoesNotFit);
  EXPECT_EQ(store_.Pin("films").value(), first);
  EXPECT_EQ(store_.Get("films")->state, engine::CollectionState::kServing);
  EXPECT_EQ(FolderServed(), "a");
  EXPECT_EQ(Counted("failed"), "2") << "that read files";
  std::filesystem::remove_all(root_ / "a");
  EXPECT_EQ(ReasonOf(Make(MakeReload())), ErrorReason::kInvalidFiles);
  EXPECT_EQ(Counted("failed"), "3");
  EXPECT_THAT(written_.str(), HasSubstr("collection not published"));
  EXPECT_FALSE(changes_.AnyUnderWay());
}

TEST_F(CollectionChangesTest, UnloadsAndForgets) {
  Write("a", 30);
  Write("b", 31);
  MustMake(MakeLoad("a"));
  MustMake(MakeReload("b"));
  EXPECT_TRUE(changes_.Unload("films", "").ok());
  EXPECT_THAT(store_.List(), IsEmpty());
  EXPECT_EQ(base::ReasonOf(changes_.Unload("films", "")), ErrorReason::kCollectionNotFound);
  EXPECT_EQ(ReasonOf(Make(MakeReload())), ErrorReason::kCollectionNotFound);
  EXPECT_EQ(MustMake(MakeLoad("a"))->version, 1U);
  EXPECT_EQ(ReasonOf(Make(Rollback())), ErrorReason::kNothingToRollBack);
}

TEST_F(CollectionChangesTest, RefusesWhatFindsTheQueueFull) {
  Write("a", 30);
  Waiting running;
  Hold(MakeLoad("a"), running);
  ChangeRequest books = MakeLoad("a");
  books.collection = "books";
  Waiting waiting;
  ASSERT_TRUE(changes_.Start(books, waiting.Caller()).ok());
  ChangeRequest songs = MakeLoad("a");
  songs.collection = "songs";
  EXPECT_EQ(ReasonOf(Make(songs)), ErrorReason::kChangeQueueFull);
  backend_.gate.Open();
  EXPECT_TRUE(running.Await().ok());
  EXPECT_TRUE(waiting.Await().ok());
  EXPECT_TRUE(Make(songs).ok()) << "the refused one is not under way";
}

TEST_F(CollectionChangesTest, StopAnswersThoseWhoWait) {
  Write("a", 30);
  Waiting running;
  Hold(MakeLoad("a"), running);
  ChangeRequest books = MakeLoad("a");
  books.collection = "books";
  Waiting waiting;
  ASSERT_TRUE(changes_.Start(books, waiting.Caller()).ok());
  changes_.Stop();
  EXPECT_EQ(ReasonOf(running.Await()), ErrorReason::kStopping);
  EXPECT_EQ(ReasonOf(waiting.Await()), ErrorReason::kStopping);
  EXPECT_EQ(ReasonOf(Make(MakeLoad("a"))), ErrorReason::kStopping);
  EXPECT_EQ(base::ReasonOf(changes_.Unload("films", "")), ErrorReason::kStopping);
  EXPECT_TRUE(changes_.AnyUnderWay());
  std::thread stopper([&] { queue_.Stop(); });
  backend_.gate.Open();
  stopper.join();
  EXPECT_FALSE(changes_.AnyUnderWay());
}

TEST_F(CollectionChangesTest, ReloadsWhatIsServedAfterAReloadThatIsUnderWay) {
  Write("a", 10);
  MustMake(MakeLoad("a"));
  Write("a", 11);
  Waiting earlier;
  Hold(MakeReload(), earlier);  // has looked at the files
  Write("a", 12);
  const Result served = ReloadServedWhileHeld();
  EXPECT_EQ((*earlier.Await())->row_count(), 11U);
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ((*served)->row_count(), 12U);
}

TEST_F(CollectionChangesTest, ReloadsWhatIsServedAfterAnotherChange) {
  Write("a", 10);
  Write("b", 20);
  MustMake(MakeLoad("a"));
  Waiting other;
  Hold(MakeReload("b"), other);
  const Result served = ReloadServedWhileHeld();
  ASSERT_TRUE(served.ok()) << served.status();
  EXPECT_EQ((*served)->row_count(), 20U);
}

TEST_F(CollectionChangesTest, EndsAReloadOfWhatIsServedWhenItStops) {
  Write("a", 10);
  Write("b", 20);
  MustMake(MakeLoad("a"));
  Waiting other;
  Hold(MakeReload("b"), other);
  std::future<Result> reload =
      std::async(std::launch::async, [&] { return changes_.ReloadServed("films"); });
  changes_.Stop();
  EXPECT_EQ(ReasonOf(reload.get()), ErrorReason::kStopping);
}

TEST_F(CollectionChangesTest, AbandonsWhatWaitsWhenTheQueueStops) {
  Write("a", 30);
  Waiting running;
  Hold(MakeLoad("a"), running);
  ChangeRequest books = MakeLoad("a");
  books.collection = "books";
  Waiting waiting;
  ASSERT_TRUE(changes_.Start(books, waiting.Caller()).ok());
  std::thread stopper([&] { queue_.Stop(); });
  // Stop has begun once the queue refuses.
  while (queue_.Submit([] {}).code() != absl::StatusCode::kUnavailable) std::this_thread::yield();
  backend_.gate.Open();
  EXPECT_TRUE(running.Await().ok());
  EXPECT_EQ(ReasonOf(waiting.Await()), ErrorReason::kStopping);
  stopper.join();
  ChangeRequest songs = MakeLoad("a");
  songs.collection = "songs";
  EXPECT_EQ(ReasonOf(Make(songs)), ErrorReason::kStopping);
}

TEST_F(CollectionChangesTest, LoadsConfiguredFoldersAtStart) {
  const ScratchFolder elsewhere;
  WriteFilmFolder(elsewhere.path(), 30, 1);
  const Result loaded = changes_.LoadAtStart("films", elsewhere.path());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(FolderServed(), "") << "outside the data root";
  WriteFilmFolder(elsewhere.path(), 31, 1);
  EXPECT_EQ(MustMake(MakeReload())->row_count(), 31U);

  Write("inside", 30);
  ASSERT_TRUE(changes_.LoadAtStart("books", root_ / "inside").ok());
  EXPECT_EQ(changes_.FindOrigin(**store_.Pin("books")).folder, "inside");
  ChangeRequest again = MakeLoad("inside");
  again.collection = "books";
  EXPECT_EQ(MustMake(again)->version, 1U);
}

TEST_F(CollectionChangesTest, StopEndsALoadAtStart) {
  Write("a", 30);
  backend_.gate.Close();
  Result loaded;
  std::thread loader([&] { loaded = changes_.LoadAtStart("films", root_ / "a"); });
  backend_.gate.AwaitArrivals(1);
  changes_.Stop();
  backend_.gate.Open();
  loader.join();
  EXPECT_EQ(ReasonOf(loaded), ErrorReason::kStopping);
}

TEST_F(CollectionChangesTest, ChangesNothingUnlessAllowed) {
  CollectionChanges changes({false, root_},
                            {publisher_, store_, queue_, metrics_, log_, clock_, limits_});
  Write("a", 30);
  ASSERT_TRUE(changes.LoadAtStart("films", root_ / "a").ok());
  Waiting waiting;
  for (const ChangeRequest& request : {MakeLoad("a"), MakeReload(), Rollback()}) {
    EXPECT_EQ(base::ReasonOf(changes.Start(request, waiting.Caller())),
              ErrorReason::kChangesNotAllowed);
  }
  EXPECT_EQ(base::ReasonOf(changes.Unload("films", "")), ErrorReason::kChangesNotAllowed);
}

TEST_F(CollectionChangesTest, RefusesNamesThatAreNone) {
  for (const std::string name : {"", "a/b", "liveness"}) {
    ChangeRequest request = MakeLoad("a");
    request.collection = name;
    EXPECT_EQ(ReasonOf(Make(request)), ErrorReason::kInvalidField) << name;
  }
}

}  // namespace
}  // namespace simile::service
