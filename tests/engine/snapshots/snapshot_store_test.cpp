#include "engine/snapshots/snapshot_store.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"
#include "engine/sample_data.h"

namespace simile::engine {
namespace {

using base::ErrorReason;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kFirst = "first content";
constexpr const char* kSecond = "second content";

Snapshot Small(std::uint64_t seed = 1) { return MakeSnapshot(RandomDataset(3, 4, seed)); }

Snapshot WithContent(std::string id) {
  Snapshot snapshot = Small();
  snapshot.id = std::move(id);
  return snapshot;
}

absl::Status Unknown(std::string_view message) {
  return base::Error(ErrorReason::kCollectionNotFound, message, "collection");
}

void Serve(SnapshotStore& store, const std::string& name) {
  ASSERT_TRUE(store.BeginCreate(name).ok());
  store.Publish(name, Small());
}

TEST(SnapshotStoreTest, SuggestsTheNearestNameWhenUnknown) {
  const FakeClock clock;
  SnapshotStore store(clock);
  EXPECT_EQ(store.Pin("films").status(),
            Unknown("no collection \"films\"; this server has none loaded"));
  Serve(store, "films");
  EXPECT_EQ(store.Pin("film").status(), Unknown("no collection \"film\". Did you mean \"films\"?"));
}

TEST(SnapshotStoreTest, ListsTheFirstNamesWhenNoneIsNear) {
  const FakeClock clock;
  SnapshotStore store(clock);
  Serve(store, "films");
  EXPECT_EQ(store.Get("zebra-crossings").status(),
            Unknown("no collection \"zebra-crossings\"; this server has films"));
  for (int i = 10; i < 20; ++i) Serve(store, "books-" + std::to_string(i));
  EXPECT_EQ(store.Pin("zebra-crossings").status(),
            Unknown("no collection \"zebra-crossings\"; this server has books-10, books-11, "
                    "books-12, books-13, books-14, books-15, books-16, books-17, books-18, "
                    "books-19 and 1 more"));
}

TEST(SnapshotStoreTest, ReportsTheProgressOfTheFirstLoad) {
  const FakeClock clock;
  SnapshotStore store(clock);
  ASSERT_TRUE(store.BeginCreate("films").ok());
  ChangeProgress reading;
  reading.share = 0.42;
  store.SetProgress("films", reading);
  EXPECT_EQ(store.Pin("films").status(),
            base::WithRetryAfter(base::Error(ErrorReason::kCollectionLoading,
                                             "films is loading (42% done); try again soon"),
                                 std::chrono::seconds(1)));
  EXPECT_EQ(base::ReasonOf(store.PinContent("films", kFirst).status()),
            ErrorReason::kCollectionLoading);
  const auto status = store.Get("films");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->state, CollectionState::kLoading);
  ASSERT_TRUE(status->progress.has_value());
  EXPECT_EQ(status->progress->share, 0.42);
  EXPECT_EQ(status->snapshot, nullptr);
}

TEST(SnapshotStoreTest, KeepsANameThatFailedToLoadUntilALoadSucceeds) {
  const FakeClock clock;
  SnapshotStore store(clock);
  const absl::Status why = absl::InvalidArgumentError("line 3 is wrong");
  store.KeepFailed("films", why);
  EXPECT_EQ(store.Get("films")->state, CollectionState::kFailed);
  EXPECT_EQ(store.Get("films")->problem, why);
  EXPECT_FALSE(store.Get("films")->progress.has_value());
  EXPECT_EQ(base::ReasonOf(store.Pin("films").status()), ErrorReason::kCollectionNotLoaded);
  EXPECT_EQ(base::ReasonOf(store.PinContent("films", kFirst).status()),
            ErrorReason::kCollectionNotLoaded);
  EXPECT_EQ(base::ReasonOf(store.BeginReplace("films")), ErrorReason::kCollectionNotLoaded);

  ASSERT_TRUE(store.BeginCreate("films").ok());
  EXPECT_EQ(base::ReasonOf(store.Pin("films").status()), ErrorReason::kCollectionLoading);
  EXPECT_TRUE(store.Get("films")->problem.ok()) << "it loads";
  store.KeepFailed("films", absl::InternalError("of an earlier load"));
  EXPECT_EQ(store.Get("films")->state, CollectionState::kLoading);
  store.AbandonChange("films");
  EXPECT_EQ(store.Get("films")->state, CollectionState::kFailed) << "it is not forgotten";
  EXPECT_EQ(store.Get("films")->problem, why);

  ASSERT_TRUE(store.BeginCreate("films").ok());
  store.Publish("films", Small());
  EXPECT_TRUE(store.Pin("films").ok());
  EXPECT_EQ(store.Get("films")->state, CollectionState::kServing);
  store.KeepFailed("films", why);
  EXPECT_TRUE(store.Pin("films").ok()) << "what serves cannot fail to load";
  ASSERT_TRUE(store.BeginReplace("films").ok());
  store.AbandonChange("films");
  EXPECT_TRUE(store.Get("films")->problem.ok());
}

TEST(SnapshotStoreTest, RemovesANameThatFailedToLoad) {
  const FakeClock clock;
  SnapshotStore store(clock);
  store.KeepFailed("films", absl::InvalidArgumentError("line 3 is wrong"));
  const auto removed = store.Remove("films");
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(*removed, nullptr);
  EXPECT_EQ(base::ReasonOf(store.Pin("films").status()), ErrorReason::kCollectionNotFound);
}

TEST(SnapshotStoreTest, CountsVersionsFromOneAndReturnsThePrevious) {
  const FakeClock clock;
  SnapshotStore store(clock);
  ASSERT_TRUE(store.BeginCreate("films").ok());
  const auto first = store.Publish("films", Small());
  EXPECT_EQ(first.version, 1U);
  EXPECT_EQ(first.previous, nullptr);
  ASSERT_TRUE(store.BeginReplace("films").ok());
  const auto second = store.Publish("films", Small(2));
  EXPECT_EQ(second.version, 2U);
  EXPECT_EQ(second.previous, first.current);
  const SnapshotPtr pinned = store.Pin("films").value();
  EXPECT_EQ(pinned, second.current);
  EXPECT_EQ(pinned->version, 2U);
  EXPECT_EQ(pinned->collection, "films");
}

TEST(SnapshotStoreTest, ServesTheOldSnapshotWhileTheNextOneLoads) {
  const FakeClock clock;
  SnapshotStore store(clock);
  Serve(store, "films");
  ASSERT_TRUE(store.BeginReplace("films").ok());
  EXPECT_EQ(store.Get("films")->state, CollectionState::kReloading);
  EXPECT_EQ(store.Get("films")->progress->share, 0);
  EXPECT_EQ(store.Pin("films").value()->version, 1U);
  store.AbandonChange("films");
  EXPECT_EQ(store.Get("films")->state, CollectionState::kServing);
  EXPECT_EQ(store.Pin("films").value()->version, 1U);
}

TEST(SnapshotStoreTest, RefusesTwoChangesOfOneCollectionAtATime) {
  const FakeClock clock;
  SnapshotStore store(clock);
  ASSERT_TRUE(store.BeginCreate("films").ok());
  EXPECT_EQ(base::ReasonOf(store.BeginCreate("films")), ErrorReason::kChangeInProgress);
  EXPECT_EQ(base::ReasonOf(store.BeginReplace("films")), ErrorReason::kChangeInProgress);
  EXPECT_EQ(base::ReasonOf(store.Remove("films").status()), ErrorReason::kChangeInProgress);
  EXPECT_TRUE(store.BeginCreate("books").ok());
  store.Publish("films", Small());
  EXPECT_EQ(base::ReasonOf(store.BeginCreate("films")), ErrorReason::kCollectionExists);
  ASSERT_TRUE(store.BeginReplace("films").ok());
  EXPECT_EQ(base::ReasonOf(store.BeginReplace("films")), ErrorReason::kChangeInProgress);
  EXPECT_EQ(base::ReasonOf(store.BeginCreate("films")), ErrorReason::kCollectionExists);
}

TEST(SnapshotStoreTest, ForgetsANameWhoseFirstLoadFailed) {
  const FakeClock clock;
  SnapshotStore store(clock);
  ASSERT_TRUE(store.BeginCreate("films").ok());
  store.AbandonChange("films");
  EXPECT_THAT(store.List(), IsEmpty());
  EXPECT_TRUE(store.BeginCreate("films").ok());
}

TEST(SnapshotStoreTest, ListsByName) {
  const FakeClock clock;
  SnapshotStore store(clock);
  Serve(store, "films");
  Serve(store, "books");
  std::vector<std::string> names;
  for (const CollectionStatus& status : store.List()) names.push_back(status.name);
  EXPECT_THAT(names, ElementsAre("books", "films"));
}

TEST(SnapshotStoreTest, KeepsARemovedSnapshotForCallsUnderWay) {
  const FakeClock clock;
  SnapshotStore store(clock);
  Serve(store, "films");
  const SnapshotPtr pinned = store.Pin("films").value();
  EXPECT_EQ(store.Remove("films").value(), pinned);
  EXPECT_EQ(base::ReasonOf(store.Pin("films").status()), ErrorReason::kCollectionNotFound);
  EXPECT_EQ(base::ReasonOf(store.Remove("films").status()), ErrorReason::kCollectionNotFound);
  EXPECT_EQ(pinned->row_count(), 3U);
}

TEST(SnapshotStoreTest, NotifiesWhenACollectionStartsAndStopsServing) {
  const FakeClock clock;
  SnapshotStore store(clock);
  std::vector<std::pair<std::string, bool>> notified;
  store.SetListener([&](const std::string& name, bool serving) {
    notified.emplace_back(name, serving);
    EXPECT_EQ(store.Pin(name).ok(), serving);  // outside the mutex: the store may be read
  });
  Serve(store, "films");
  ASSERT_TRUE(store.BeginReplace("films").ok());
  store.Publish("films", Small());
  ASSERT_TRUE(store.BeginCreate("books").ok());
  store.AbandonChange("books");
  ASSERT_TRUE(store.Remove("films").ok());
  EXPECT_THAT(notified, ElementsAre(Pair("films", true), Pair("films", false)));
}

TEST(SnapshotStoreTest, NotifiesOfTheCurrentStateLastWhenChangesRace) {
  const FakeClock clock;
  SnapshotStore store(clock);
  bool last_state = false;  // unguarded: calls of the listener never overlap
  store.SetListener([&](const std::string&, bool serving) { last_state = serving; });
  constexpr int kRounds = 200;
  const auto change = [&] {
    for (int round = 0; round < kRounds; ++round) {
      if (store.BeginCreate("films").ok()) store.Publish("films", Small());
      (void)store.Remove("films").ok();
    }
  };
  std::thread other(change);
  change();
  other.join();
  EXPECT_EQ(last_state, store.Pin("films").ok());
}

// Records where it was destroyed.
class Witness final : public SegmentIndex {
 public:
  explicit Witness(std::atomic<std::thread::id>& destroyed_on) : destroyed_on_(destroyed_on) {}
  ~Witness() override { destroyed_on_ = std::this_thread::get_id(); }
  std::size_t row_count() const override { return 3; }
  std::size_t dim() const override { return 4; }
  absl::Status Search(const SearchBatch&, SearchResult&) const override { return absl::OkStatus(); }
  absl::StatusOr<FallbackBackend> Score(MatrixView, std::span<const Row>, std::span<float>,
                                        DeviceTime*) const override {
    return nullptr;
  }

 private:
  std::atomic<std::thread::id>& destroyed_on_;
};

TEST(SnapshotStoreTest, FreesASnapshotOnItsOwnThreadWhicheverReferenceIsLast) {
  std::atomic<std::thread::id> destroyed_on;
  const FakeClock clock;
  SnapshotStore store(clock);
  Snapshot snapshot = Small();
  snapshot.segments = {std::make_shared<Witness>(destroyed_on)};
  ASSERT_TRUE(store.BeginCreate("films").ok());
  SnapshotPtr last = store.Publish("films", std::move(snapshot)).current;
  ASSERT_TRUE(store.Remove("films").ok());
  store.AwaitReclaimed();
  EXPECT_EQ(destroyed_on.load(), std::thread::id()) << "freed while still held";
  last.reset();
  store.AwaitReclaimed();
  EXPECT_NE(destroyed_on.load(), std::thread::id());
  EXPECT_NE(destroyed_on.load(), std::this_thread::get_id());
}

TEST(SnapshotStoreTest, AllowsASnapshotToOutliveTheStore) {
  std::atomic<std::thread::id> destroyed_on;
  SnapshotPtr last;
  {
    const FakeClock clock;
    SnapshotStore store(clock);
    Snapshot snapshot = Small();
    snapshot.segments = {std::make_shared<Witness>(destroyed_on)};
    ASSERT_TRUE(store.BeginCreate("films").ok());
    last = store.Publish("films", std::move(snapshot)).current;
  }
  EXPECT_EQ(destroyed_on.load(), std::thread::id());
  last.reset();
  EXPECT_EQ(destroyed_on.load(), std::this_thread::get_id());
}

TEST(SnapshotStoreTest, PinsAWholeSnapshotWhileOthersArePublished) {
  const FakeClock clock;
  SnapshotStore store(clock);
  Serve(store, "films");
  std::atomic<bool> done = false;
  std::thread publisher([&] {
    for (int round = 0; round < 300; ++round) {
      if (store.BeginReplace("films").ok()) store.Publish("films", Small());
    }
    done = true;
  });
  std::uint64_t seen = 0;
  while (!done) {
    const SnapshotPtr pinned = store.Pin("films").value();
    EXPECT_GE(pinned->version, seen);
    EXPECT_EQ(pinned->segments.size(), 1U);
    seen = pinned->version;
  }
  publisher.join();
  EXPECT_EQ(store.Pin("films").value()->version, 301U);
}

TEST(SnapshotTest, CountsItsBytesByKind) {
  auto dataset = RandomDataset(3, 4, 1);
  dataset->profiles.vectors = RandomMatrix(2, 4, 2);
  dataset->profiles.ids = MakeIds({"ann", "bob"});
  Snapshot snapshot = MakeSnapshot(dataset);
  snapshot.index_plan = {.host_bytes = 7, .device_bytes = 9};
  const ResidentBytes bytes = SumBytes(snapshot);
  EXPECT_EQ(bytes.vectors, 3U * 32 * 4);
  EXPECT_EQ(bytes.users, std::uint64_t{2} * 32 * 4 + dataset->profiles.ids.bytes());
  EXPECT_EQ(bytes.index, 7U);
  EXPECT_EQ(bytes.device, 9U);
  EXPECT_EQ(bytes.host(), bytes.vectors + bytes.payload + bytes.users + 7U);
}

TEST(SnapshotTest, LetsSearchesReturnAllRowsThatAreNotSkipped) {
  const auto dataset = RandomDataset(130, 4, 1);
  EXPECT_EQ(SearchableRows(*dataset), nullptr);
  const std::uint64_t bytes = SumBytes(MakeSnapshot(dataset)).payload;
  dataset->skipped_rows = {0, 63, 64, 129};
  const auto searchable = SearchableRows(*dataset);
  ASSERT_NE(searchable, nullptr);
  EXPECT_EQ(searchable->AllowedCount(), 126U);
  for (const Row row : dataset->skipped_rows) EXPECT_FALSE(searchable->Allows(row)) << row;
  EXPECT_EQ(SumBytes(MakeSnapshot(dataset)).payload,
            bytes + searchable->bytes() + dataset->skipped_rows.capacity() * sizeof(Row));
}

// A segment that takes other memory than planned, and may have a fallback backend.
class MovedSegment final : public SegmentIndex {
 public:
  std::size_t row_count() const override { return 3; }
  std::size_t dim() const override { return 4; }
  FallbackBackend fallback() const override { return fallback_backend; }
  std::optional<ResidentPlan> Resident() const override { return ResidentPlan{5, 6}; }
  absl::Status Search(const SearchBatch&, SearchResult&) const override { return absl::OkStatus(); }
  absl::StatusOr<FallbackBackend> Score(MatrixView, std::span<const Row>, std::span<float>,
                                        DeviceTime*) const override {
    return nullptr;
  }

  FallbackBackend fallback_backend;
};

TEST(SnapshotTest, CountsTheBytesThatItsSegmentsReport) {
  Snapshot snapshot = MakeSnapshot(RandomDataset(3, 4, 1));
  snapshot.index_plan = {.host_bytes = 7, .device_bytes = 9};
  snapshot.segments = {std::make_shared<MovedSegment>(), std::make_shared<MovedSegment>()};
  EXPECT_EQ(SumBytes(snapshot).index, 10U);
  EXPECT_EQ(SumBytes(snapshot).device, 12U);
}

TEST(SnapshotTest, ReturnsTheFallbackBackendOfAnySegment) {
  Snapshot snapshot = MakeSnapshot(RandomDataset(3, 4, 1));
  EXPECT_EQ(FindFallback(snapshot), nullptr);
  auto moved = std::make_shared<MovedSegment>();
  moved->fallback_backend =
      std::make_shared<const ServedBy>(ServedBy{{"cpu", "scan", "a test"}, "it does not fit"});
  snapshot.segments.push_back(moved);
  EXPECT_EQ(FindFallback(snapshot)->reason, "it does not fit");
}

// A store of one collection, on a clock that the test sets.
class LeaseTest : public testing::Test {
 protected:
  LeaseTest() {
    EXPECT_TRUE(store_.BeginCreate("films").ok());
    store_.Publish("films", WithContent(kFirst));
  }

  void Replace(Snapshot next) {
    ASSERT_TRUE(store_.BeginReplace("films").ok());
    store_.Publish("films", std::move(next));
  }
  void LeaseCurrent() { store_.Lease(**store_.Pin("films"), std::chrono::seconds(60)); }
  bool Kept(const char* id) const { return store_.PinContent("films", id).ok(); }

  FakeClock clock_;
  SnapshotStore store_{clock_};
};

TEST_F(LeaseTest, DoesNotKeepAReplacedSnapshotWithoutOne) {
  EXPECT_TRUE(Kept(kFirst));
  Replace(WithContent(kSecond));
  EXPECT_EQ(store_.PinContent("films", kFirst).status(),
            base::Error(ErrorReason::kPageSnapshotGone,
                        "films no longer has the content of this page token; start again with the "
                        "first page"));
  EXPECT_EQ(store_.PinContent("films", kSecond).value(), store_.Pin("films").value());
}

TEST_F(LeaseTest, KeepsAReplacedSnapshotUntilItExpires) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  clock_.Advance(std::chrono::seconds(59));
  ASSERT_TRUE(Kept(kFirst));
  EXPECT_EQ((*store_.PinContent("films", kFirst))->version, 1U);
  EXPECT_EQ((*store_.Pin("films"))->version, 2U);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(Kept(kFirst));
}

TEST_F(LeaseTest, IsRenewedByEveryPage) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  clock_.Advance(std::chrono::seconds(50));
  store_.Lease(**store_.PinContent("films", kFirst), std::chrono::seconds(60));
  clock_.Advance(std::chrono::seconds(50));
  EXPECT_TRUE(Kept(kFirst));
}

TEST_F(LeaseTest, EndsWithEndLeases) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  ASSERT_TRUE(Kept(kFirst));
  store_.EndLeases();
  EXPECT_FALSE(Kept(kFirst));
}

TEST_F(LeaseTest, KeepsOnlyTheGenerationThatHasIt) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  Replace(WithContent("third content"));  // the second has no lease
  EXPECT_FALSE(Kept(kFirst));
  EXPECT_FALSE(Kept(kSecond));
}

TEST_F(LeaseTest, FindsContentWhateverItsVersion) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  Replace(WithContent(kFirst));
  EXPECT_EQ(store_.PinContent("films", kFirst).value()->version, 3U);
  EXPECT_EQ(base::ReasonOf(store_.PinContent("film", kFirst).status()),
            ErrorReason::kCollectionNotFound);
}

TEST_F(LeaseTest, PublishesAKeptGenerationAgain) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  const SnapshotPtr kept = store_.PinContent("films", kFirst).value();
  Replace(*kept);
  const SnapshotPtr current = store_.Pin("films").value();
  EXPECT_EQ(current->version, 3U) << "versions count what was published";
  EXPECT_EQ(kept->version, 1U) << "calls under way see no change";
  EXPECT_EQ(current->id, kFirst);
  EXPECT_EQ(current->loaded_at, kept->loaded_at);
  EXPECT_EQ(current->dataset, kept->dataset);
  EXPECT_EQ(current->segments, kept->segments);
  EXPECT_EQ(current->filters, kept->filters);
  EXPECT_EQ(current->text_index, kept->text_index);
  EXPECT_FALSE(Kept(kSecond)) << "nobody leased it";
}

TEST_F(LeaseTest, HoldsForContentThatIsPublishedAgain) {
  LeaseCurrent();
  Replace(WithContent(kSecond));
  Replace(*store_.PinContent("films", kFirst).value());
  Replace(WithContent("third content"));
  clock_.Advance(std::chrono::seconds(59));
  EXPECT_TRUE(Kept(kFirst)) << "pages of it are still under way";
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(Kept(kFirst));
}

TEST_F(LeaseTest, FreesTheSharedPartsWithTheLastGenerationThatHasThem) {
  std::atomic<std::thread::id> destroyed_on;
  Snapshot witnessed = WithContent(kSecond);
  witnessed.segments = {std::make_shared<Witness>(destroyed_on)};
  Replace(std::move(witnessed));
  LeaseCurrent();
  Replace(WithContent(kFirst));
  Replace(*store_.PinContent("films", kSecond).value());
  store_.AwaitReclaimed();
  EXPECT_EQ(destroyed_on.load(), std::thread::id()) << "freed while it is served";
  ASSERT_TRUE(store_.Remove("films").ok());
  store_.AwaitReclaimed();
  EXPECT_NE(destroyed_on.load(), std::thread::id());
  EXPECT_NE(destroyed_on.load(), std::this_thread::get_id());
}

}  // namespace
}  // namespace simile::engine
