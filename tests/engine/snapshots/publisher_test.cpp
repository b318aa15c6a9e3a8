#include "engine/snapshots/publisher.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "base/unasked_work.h"
#include "engine/fake_backend.h"
#include "engine/fake_clock.h"
#include "files/film_folder.h"
#include "files/scratch_folder.h"

namespace simile::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

constexpr std::uint64_t kMib = 1 << 20;

// Writes a folder per collection and sets the free memory of the machine.
class PublisherTest : public testing::Test {
 protected:
  PublisherTest() {
    options_.read_memory = [this]() -> absl::StatusOr<HostMemory> { return memory_; };
  }

  Publisher Make() { return Publisher(options_, backend_, store_, clock_); }

  static Publisher::Change Of(const std::string& collection, const std::filesystem::path& folder) {
    Publisher::Change change;
    change.collection = collection;
    change.folder = folder;
    return change;
  }
  static absl::StatusOr<SnapshotPtr> Create(Publisher& publisher, const std::string& collection,
                                            const std::filesystem::path& folder) {
    return ToSnapshot(publisher.Create(Of(collection, folder)));
  }
  static absl::StatusOr<SnapshotPtr> Replace(Publisher& publisher, const std::string& collection,
                                             const std::filesystem::path& folder) {
    return ToSnapshot(publisher.Replace(Of(collection, folder)));
  }
  static absl::StatusOr<SnapshotPtr> ToSnapshot(const absl::StatusOr<Publisher::Loaded>& loaded) {
    if (!loaded.ok()) return loaded.status();
    return loaded->snapshot;
  }

  std::filesystem::path WriteFolder(const std::string& name, std::size_t row_count,
                                    float shift) const {
    return WriteFilmFolder(root_ / name, row_count, shift);
  }

  const ScratchFolder scratch_;
  const std::filesystem::path& root_ = scratch_.path();
  FakeClock clock_;
  FakeBackend backend_;
  SnapshotStore store_{clock_};
  Publisher::Options options_;
  HostMemory memory_{64 * kMib, "available on the machine"};
};

TEST_F(PublisherTest, PublishesAFolderAsAServingSnapshot) {
  backend_.plan = {.host_bytes = 5, .device_bytes = 6};
  Publisher publisher = Make();
  const auto snapshot = Create(publisher, "films", WriteFolder("films", 30, 1));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ((*snapshot)->version, 1U);
  EXPECT_EQ((*snapshot)->collection, "films");
  EXPECT_EQ((*snapshot)->loaded_at, clock_.WallNow());
  EXPECT_EQ((*snapshot)->row_count(), 30U);
  EXPECT_EQ((*snapshot)->dim(), 2U);
  EXPECT_EQ((*snapshot)->segments.size(), 1U);
  EXPECT_GE((*snapshot)->dataset->longest_row, 1.0);
  EXPECT_LT((*snapshot)->dataset->longest_row, 1.0001);
  EXPECT_EQ((*snapshot)->index_plan.host_bytes, 5U);
  EXPECT_EQ((*snapshot)->dataset->ids.Find("film-7"), Row{7});
  base::LongWork work = tests::UnaskedWork();
  EXPECT_EQ((*snapshot)->text_index->Find({"title"}, "film 7", 9, nullptr, work)->whole_match_count,
            1U);
  EXPECT_EQ(store_.Pin("films").value(), *snapshot);
}

TEST_F(PublisherTest, LeavesSkippedRowsOutOfSearches) {
  const std::filesystem::path folder = WriteFolder("films", 4, 1);
  std::ofstream(folder / "content_vectors.npy", std::ios::binary)
      << NpyFile({1, 1, 0, 0, 3, 1, 0, 0}, 2);
  std::ofstream(folder / "collection.json") << R"({"on_zero_row": "skip"})";
  Publisher publisher = Make();
  const auto skipping = Create(publisher, "films", folder);
  ASSERT_TRUE(skipping.ok()) << skipping.status();
  EXPECT_EQ((*skipping)->row_count(), 4U);
  ASSERT_NE((*skipping)->searchable, nullptr);
  EXPECT_EQ((*skipping)->searchable->words()[0], 0b0101U);
  std::ofstream(folder / "collection.json") << R"({"metric": "dot"})";
  const auto dot = Create(publisher, "dot", folder);
  ASSERT_TRUE(dot.ok()) << dot.status();
  EXPECT_EQ((*dot)->searchable, nullptr);
}

TEST_F(PublisherTest, ReplacesASnapshotByTheNextGeneration) {
  Publisher publisher = Make();
  ASSERT_TRUE(Create(publisher, "films", WriteFolder("films", 30, 1)).ok());
  const auto second = Replace(publisher, "films", WriteFolder("films", 31, 1));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->version, 2U);
  EXPECT_EQ(store_.Pin("films").value()->row_count(), 31U);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
}

TEST_F(PublisherTest, NotesWhatTheNextGenerationLacks) {
  const std::filesystem::path folder = WriteFolder("films", 4, 1);
  std::ofstream(folder / "preference_vectors.npy", std::ios::binary) << NpyFile({1, 1, 2, 1}, 2);
  std::ofstream(folder / "user_ids.json") << R"(["ann", "bob"])";
  std::ofstream(folder / "interactions.jsonl") << R"({"user_id": "ann", "id": "film-1"})";
  Publisher publisher = Make();
  const auto first = Create(publisher, "films", folder);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto bare = WriteFolder("bare", 4, 2);
  std::filesystem::remove(bare / "metadata.jsonl");
  const auto second = Replace(publisher, "films", bare);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(
      (*second)->dataset->notes,
      testing::IsSupersetOf({"no users; the former content had 2 users",
                             "no seen items; the former content had 1 seen item",
                             "no payload fields; the former content had 2 payload fields"}));
  const auto third = Replace(publisher, "films", folder);
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_THAT((*third)->dataset->notes, testing::Each(testing::Not(HasSubstr("before had"))));
}

TEST_F(PublisherTest, DropsLeasedSnapshotsWhenALoadNeedsMemory) {
  Publisher publisher = Make();
  const auto first = Create(publisher, "films", WriteFolder("films", 30, 1));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string id = (*first)->id;
  store_.Lease(**first, std::chrono::seconds(60));
  ASSERT_TRUE(Replace(publisher, "films", WriteFolder("films", 31, 1)).ok());
  EXPECT_TRUE(store_.PinContent("films", id).ok()) << "it is leased";
  ASSERT_TRUE(Create(publisher, "books", WriteFolder("books", 3, 1)).ok());
  EXPECT_EQ(store_.PinContent("films", id).status().code(), absl::StatusCode::kAborted);
}

TEST_F(PublisherTest, ServesTheOldGenerationAfterABadFile) {
  Publisher publisher = Make();
  ASSERT_TRUE(Create(publisher, "films", WriteFolder("films", 30, 1)).ok());
  const auto bad = WriteFolder("films", 30, 1);
  std::ofstream(bad / "metadata.jsonl", std::ios::app) << "{\"id\": \"one too many\"}\n";
  const auto second = Replace(publisher, "films", bad);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("metadata.jsonl"));
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
}

TEST_F(PublisherTest, LeavesNothingBehindWhenAFirstLoadFails) {
  Publisher publisher = Make();
  EXPECT_EQ(base::ReasonOf(Create(publisher, "films", root_ / "absent").status()),
            base::ErrorReason::kInvalidFiles);
  EXPECT_THAT(store_.List(), IsEmpty());
  EXPECT_TRUE(Create(publisher, "films", WriteFolder("films", 3, 1)).ok());
}

TEST_F(PublisherTest, RefusesNamesThatAreNotFreeOrNotThere) {
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  EXPECT_EQ(Replace(publisher, "films", folder).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Create(publisher, "films", folder).ok());
  EXPECT_EQ(Create(publisher, "films", folder).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(PublisherTest, DoesNotPublishAWrongIndex) {
  Publisher publisher = Make();
  ASSERT_TRUE(Create(publisher, "films", WriteFolder("films", 30, 1)).ok());
  backend_.spoil = [](SearchResult& result) {
    std::swap(result.Buffer(0)[0], result.Buffer(0)[1]);
  };
  const auto second = Replace(publisher, "films", WriteFolder("films", 30, 2));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(store_.Pin("films").value()->version, 1U);
}

TEST_F(PublisherTest, ReturnsTheBackendsErrorWithAReason) {
  Publisher publisher = Make();
  const auto create = [&](absl::Status status) {
    backend_.status = std::move(status);
    return Create(publisher, "films", WriteFolder("films", 3, 1)).status();
  };
  const absl::Status full = create(absl::ResourceExhaustedError("the device is full"));
  EXPECT_EQ(base::ReasonOf(full), base::ErrorReason::kDoesNotFit);
  EXPECT_EQ(full.message(), "the device is full");
  const absl::Status lost = create(absl::UnavailableError("the device is lost"));
  EXPECT_EQ(base::ReasonOf(lost), base::ErrorReason::kInternal);
  EXPECT_EQ(lost.message(), "the device is lost");
  EXPECT_THAT(store_.List(), IsEmpty());
}

TEST_F(PublisherTest, RefusesWhatDoesNotFitAndNamesEveryPart) {
  backend_.plan.host_bytes = 100 * kMib;
  Publisher publisher = Make();
  const absl::Status status = Create(publisher, "films", WriteFolder("films", 1'000, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      MatchesRegex("films does not fit: it needs 100\\.[0-9] MiB \\(vectors 125\\.0 KiB, "
                   "payload [0-9.]+ KiB, users 0 B, index 100\\.0 MiB\\); 57\\.6 MiB may be "
                   "taken: nine tenths of the 64\\.0 MiB available on the machine"));
  EXPECT_THAT(store_.List(), IsEmpty());
}

TEST_F(PublisherTest, SaysSoWhenFreeMemoryCannotBeRead) {
  options_.read_memory = []() -> absl::StatusOr<HostMemory> {
    return absl::UnavailableError("no /proc");
  };
  Publisher publisher = Make();
  EXPECT_EQ(
      Create(publisher, "films", WriteFolder("films", 3, 1)).status(),
      base::Error(
          base::ErrorReason::kInternal,
          "cannot tell how much memory is free (no /proc); set collections.memory_bytes_max"));
}

TEST_F(PublisherTest, CountsTheServingGenerationsAgainstALimit) {
  options_.memory_bytes_max = 10 * kMib;
  memory_.available_bytes = 0;  // not read: the limit is set
  backend_.plan.host_bytes = 6 * kMib;
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  ASSERT_TRUE(Create(publisher, "films", folder).ok());
  const absl::Status status = Replace(publisher, "films", folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("4.0 MiB may be taken: of the 10.0 MiB allowed for all collections 6.0 MiB "
                        "is in use"));
  // Unloading frees its memory: nothing else was left reserved.
  ASSERT_TRUE(store_.Remove("films").ok());
  EXPECT_TRUE(Create(publisher, "films", folder).ok());
}

TEST_F(PublisherTest, CountsAReplacedGenerationAgainstALimitWhileACallHoldsIt) {
  options_.memory_bytes_max = 15 * kMib;
  backend_.plan.host_bytes = 6 * kMib;
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  ASSERT_TRUE(Create(publisher, "films", folder).ok());
  SnapshotPtr held = store_.Pin("films").value();
  ASSERT_TRUE(Replace(publisher, "films", WriteFolder("later", 4, 1)).ok());
  const absl::Status status = Create(publisher, "books", folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("12.0 MiB is in use"));
  held = nullptr;
  EXPECT_TRUE(Create(publisher, "books", folder).ok());
}

// They share one dataset and its index.
TEST_F(PublisherTest, CountsARestoredGenerationOnceAgainstALimit) {
  options_.memory_bytes_max = 15 * kMib;
  backend_.plan.host_bytes = 6 * kMib;
  Publisher publisher = Make();
  ASSERT_TRUE(Create(publisher, "films", WriteFolder("films", 3, 1)).ok());
  SnapshotPtr earlier = store_.Pin("films").value();
  ASSERT_TRUE(Replace(publisher, "films", WriteFolder("later", 4, 1)).ok());
  ASSERT_TRUE(publisher.Restore("films", *earlier).ok());
  EXPECT_TRUE(Create(publisher, "books", WriteFolder("books", 3, 1)).ok());
  EXPECT_THAT(
      std::string(Create(publisher, "songs", WriteFolder("songs", 3, 1)).status().message()),
      HasSubstr("12.0 MiB is in use"));
}

TEST_F(PublisherTest, ReservesTheSameMemoryForOneLoadOnly) {
  options_.memory_bytes_max = 10 * kMib;
  backend_.plan.host_bytes = 6 * kMib;
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 3, 1);
  backend_.gate.Close();
  std::thread first([&] { EXPECT_TRUE(Create(publisher, "films", folder).ok()); });
  backend_.gate.AwaitArrivals(1);
  const absl::Status status = Create(publisher, "books", folder).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("less 6.0 MiB promised to a load under way"));
  backend_.gate.Open();
  first.join();
}

TEST_F(PublisherTest, ShowsProgressWhileItLoads) {
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 30, 1);
  backend_.gate.Close();
  std::thread loader([&] { EXPECT_TRUE(Create(publisher, "films", folder).ok()); });
  backend_.gate.AwaitArrivals(1);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kLoading);
  ASSERT_TRUE(store_.Get("films")->progress.has_value());
  const ChangeProgress progress = *store_.Get("films")->progress;
  EXPECT_EQ(progress.stage, ChangeStage::kIndexing);
  EXPECT_DOUBLE_EQ(progress.share, 0.8);  // the dataset is read
  EXPECT_EQ(progress.bytes_read, progress.bytes_total);
  EXPECT_EQ(store_.Pin("films").status().code(), absl::StatusCode::kFailedPrecondition);
  backend_.gate.Open();
  loader.join();
  EXPECT_EQ(store_.Get("films")->progress, std::nullopt);
}

TEST_F(PublisherTest, ReportsEachStageAndTheBytesOfEachFile) {
  Publisher publisher = Make();
  std::vector<ChangeProgress> reports;
  Publisher::Change change = Of("films", WriteFolder("films", 30, 1));
  change.progress = [&](const ChangeProgress& progress) { reports.push_back(progress); };
  ASSERT_TRUE(publisher.Create(change).ok());
  const std::uint64_t bytes = std::filesystem::file_size(change.folder / "content_vectors.npy") +
                              std::filesystem::file_size(change.folder / "metadata.jsonl");
  std::vector<ChangeStage> stages;
  std::set<std::string> files;
  double share = 0;
  for (const ChangeProgress& report : reports) {
    if (stages.empty() || stages.back() != report.stage) stages.push_back(report.stage);
    if (!report.file.empty()) {
      EXPECT_EQ(report.bytes_total, bytes);
      EXPECT_LE(report.bytes_read, bytes);
      files.insert(report.file);
    }
    EXPECT_GE(report.share, share);
    share = report.share;
  }
  EXPECT_THAT(stages,
              ElementsAre(ChangeStage::kReading, ChangeStage::kIndexing, ChangeStage::kVerifying));
  EXPECT_THAT(files, ElementsAre("content_vectors.npy", "metadata.jsonl"));
  EXPECT_EQ(reports.back().bytes_read, bytes);
  EXPECT_EQ(share, 1);
}

TEST_F(PublisherTest, DoesNotPublishContentThatIsServedAlready) {
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 30, 1);
  const auto first = publisher.Create(Of("films", folder));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->published);
  WriteFolder("films", 30, 1);  // other files of the same content
  const auto second = publisher.Replace(Of("films", folder));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->published);
  EXPECT_EQ(second->snapshot, first->snapshot);
  EXPECT_NE(second->fingerprint, first->fingerprint);
  EXPECT_EQ(second->fingerprint, data::TakeFingerprint(folder, options_.limits).value());
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
  EXPECT_EQ(backend_.segments_made, 1U);
}

TEST_F(PublisherTest, RefusesAnotherShapeBeforeItReadsTheFiles) {
  Publisher publisher = Make();
  ASSERT_TRUE(Create(publisher, "films", WriteFolder("films", 30, 1)).ok());
  const auto folder = WriteFolder("dots", 30, 1);
  std::ofstream(folder / "collection.json") << "{\"metric\": \"dot\"}";
  std::ofstream(folder / "metadata.jsonl") << "not read\n";
  const absl::Status status = Replace(publisher, "films", folder).status();
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kShapeChange);
  EXPECT_EQ(base::FieldOf(status), "allow_shape_change");
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("films has 2 dimensions (cosine), the new snapshot would have 2 dimensions "
                        "(dot)"));
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);

  WriteFolder("dots", 30, 1);  // with a payload that can be read
  Publisher::Change change = Of("films", folder);
  change.allow_shape_change = true;
  const auto replaced = publisher.Replace(change);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->snapshot->dataset->metric, Metric::kDot);
}

TEST_F(PublisherTest, PublishesOnlyTheRequiredContent) {
  Publisher publisher = Make();
  const auto first = Create(publisher, "films", WriteFolder("one", 30, 1));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Replace(publisher, "films", WriteFolder("two", 31, 1)).ok());
  Publisher::Change change = Of("films", WriteFolder("three", 32, 1));
  change.required_id = (*first)->id;
  EXPECT_EQ(base::ReasonOf(publisher.Replace(change).status()),
            base::ErrorReason::kNothingToRollBack);
  change.folder = root_ / "two";
  EXPECT_EQ(base::ReasonOf(publisher.Replace(change).status()),
            base::ErrorReason::kNothingToRollBack)
      << "served already, but not what is required";
  EXPECT_EQ(store_.Pin("films").value()->version, 2U);
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
  change.folder = root_ / "one";
  const auto back = publisher.Replace(change);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->snapshot->id, (*first)->id);
  EXPECT_EQ(back->snapshot->version, 3U);
}

TEST_F(PublisherTest, RestoresAGenerationFromMemory) {
  Publisher publisher = Make();
  const auto first = Create(publisher, "films", WriteFolder("films", 30, 1));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Replace(publisher, "films", WriteFolder("films", 31, 1)).ok());
  const auto restored = publisher.Restore("films", **first);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_TRUE(restored->published);
  EXPECT_EQ(restored->snapshot->id, (*first)->id);
  EXPECT_EQ(restored->snapshot->dataset, (*first)->dataset);
  EXPECT_EQ(restored->snapshot->version, 3U);
  EXPECT_EQ(store_.Pin("films").value(), restored->snapshot);
  EXPECT_EQ(backend_.segments_made, 2U);
  EXPECT_EQ(publisher.Restore("books", **first).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(PublisherTest, GivesTheClaimUpWhenMemoryRunsOut) {
  Publisher publisher = Make();
  const auto folder = WriteFolder("films", 30, 1);
  backend_.out_of_memory = true;
  const absl::Status status = Create(publisher, "films", folder).status();
  EXPECT_EQ(base::ReasonOf(status), base::ErrorReason::kDoesNotFit);
  EXPECT_THAT(store_.List(), IsEmpty());
  backend_.out_of_memory = false;
  ASSERT_TRUE(Create(publisher, "films", folder).ok());
  backend_.out_of_memory = true;
  EXPECT_FALSE(Replace(publisher, "films", WriteFolder("films", 31, 1)).ok());
  EXPECT_EQ(store_.Get("films")->state, CollectionState::kServing);
}

}  // namespace
}  // namespace simile::engine
