#include "service/changes/changes_under_way.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_detail.h"
#include "engine/fake_clock.h"

namespace simile::service {
namespace {

using base::ErrorReason;
using engine::ChangeProgress;
using engine::ChangeStage;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::chrono::milliseconds kInterval{200};

// The progress and the answers that a caller got.
struct Told {
  std::vector<double> shares;
  std::vector<absl::StatusOr<engine::SnapshotPtr>> results;
  std::stop_source left;

  ChangeCaller Caller() {
    ChangeCaller caller;
    caller.progress = [this](const ChangeProgress& progress) {
      EXPECT_THAT(results, IsEmpty()) << "progress after the end";
      shares.push_back(progress.share);
    };
    caller.done = [this](const absl::StatusOr<engine::SnapshotPtr>& result) {
      results.push_back(result);
    };
    caller.left = left.get_token();
    return caller;
  }
  // The reason of its only answer.
  ErrorReason reason() const {
    EXPECT_EQ(results.size(), 1U);
    return base::ReasonOf(results.at(0).status());
  }
};

class ChangesUnderWayTest : public testing::Test {
 protected:
  static ChangeRequest Load(const std::string& collection, const std::string& folder = "a") {
    ChangeRequest request;
    request.kind = ChangeKind::kLoad;
    request.collection = collection;
    request.folder.path = folder;
    return request;
  }
  bool Begin(const ChangeRequest& request, Told& told) {
    bool began = false;
    const absl::Status joined = changes_.Join(request, told.Caller(), began);
    EXPECT_TRUE(joined.ok()) << joined;
    return began;
  }
  absl::Status Refused(const ChangeRequest& request) {
    bool began = false;
    return changes_.Join(request, Told().Caller(), began);
  }
  void Report(const std::string& collection, double share,
              ChangeStage stage = ChangeStage::kReading) {
    ChangeProgress progress;
    progress.stage = stage;
    progress.share = share;
    changes_.Report(collection, progress);
  }
  static engine::SnapshotPtr Snapshot() { return std::make_shared<const engine::Snapshot>(); }

  engine::FakeClock clock_;
  ChangesUnderWay changes_{clock_};
};

TEST_F(ChangesUnderWayTest, BeginsOnceAndAnswersAllWhoJoined) {
  Told first;
  Told second;
  Told third;
  EXPECT_TRUE(changes_.empty());
  EXPECT_TRUE(Begin(Load("films"), first));
  EXPECT_FALSE(Begin(Load("films"), second));
  EXPECT_FALSE(Begin(Load("films"), third));
  EXPECT_TRUE(changes_.Has("films"));
  const engine::SnapshotPtr snapshot = Snapshot();
  changes_.End("films", snapshot);
  EXPECT_TRUE(changes_.empty());
  for (const Told* told : {&first, &second, &third}) {
    ASSERT_EQ(told->results.size(), 1U);
    EXPECT_EQ(told->results[0].value(), snapshot);
  }
  Told next;
  EXPECT_TRUE(Begin(Load("films"), next)) << "it is over";
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, RefusesAnotherChangeOfTheCollection) {
  Told told;
  ASSERT_TRUE(Begin(Load("films"), told));
  ChangeRequest reload = Load("films");
  reload.kind = ChangeKind::kReload;
  ChangeRequest unload = Load("films", "");
  unload.kind = ChangeKind::kUnload;
  ChangeRequest expecting = Load("films");
  expecting.expected_snapshot_id = "0123";
  ChangeRequest reshaping = Load("films");
  reshaping.allow_shape_change = true;
  for (const ChangeRequest& other : {Load("films", "b"), reload, unload, expecting, reshaping}) {
    const absl::Status refused = Refused(other);
    EXPECT_EQ(base::ReasonOf(refused), ErrorReason::kChangeInProgress);
    EXPECT_EQ(base::FieldOf(refused), "collection");
    EXPECT_EQ(refused.message(),
              "a load of films from \"a\" is under way: the same call again joins it, any other "
              "change has to wait for its end");
  }
  Told books;
  EXPECT_TRUE(Begin(Load("books"), books)) << "another collection";
  changes_.End("books", Snapshot());
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, DoesNotShowAFolderOfTheOperator) {
  ChangeRequest request = Load("films", "/srv/secret");
  request.folder.configured = true;
  Told told;
  ASSERT_TRUE(Begin(request, told));
  EXPECT_THAT(std::string(Refused(Load("films")).message()),
              testing::StartsWith("a load of films is under way"));
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, RefusesASecondUnload) {
  ChangeRequest unload = Load("films", "");
  unload.kind = ChangeKind::kUnload;
  Told told;
  ASSERT_TRUE(Begin(unload, told));
  EXPECT_EQ(base::ReasonOf(Refused(unload)), ErrorReason::kChangeInProgress);
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, SendsProgressAtMostFiveTimesASecond) {
  Told told;
  ASSERT_TRUE(Begin(Load("films"), told));
  EXPECT_THAT(told.shares, ElementsAre(0)) << "at once: it waits";
  Report("films", 0.1);  // another stage
  Report("films", 0.2);
  clock_.Advance(kInterval / 2);
  Report("films", 0.3);
  clock_.Advance(kInterval / 2);
  Report("films", 0.4);
  Report("films", 0.5);
  Report("films", 0.8, ChangeStage::kIndexing);
  Report("films", 0.95, ChangeStage::kVerifying);
  Report("films", 1, ChangeStage::kVerifying);
  EXPECT_THAT(told.shares, ElementsAre(0, 0.1, 0.4, 0.8, 0.95, 1));
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, SendsTheLatestProgressToThoseWhoJoin) {
  Told first;
  ASSERT_TRUE(Begin(Load("films"), first));
  Report("films", 0.1);
  Report("films", 0.2);
  Told second;
  ASSERT_FALSE(Begin(Load("films"), second));
  EXPECT_THAT(first.shares, ElementsAre(0, 0.1));
  EXPECT_THAT(second.shares, ElementsAre(0.2));
  clock_.Advance(kInterval);
  Report("films", 0.3);
  EXPECT_THAT(first.shares, ElementsAre(0, 0.1, 0.3));
  EXPECT_THAT(second.shares, ElementsAre(0.2, 0.3));
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, GoesOnWithoutThoseWhoLeft) {
  Told stays;
  Told leaves;
  ASSERT_TRUE(Begin(Load("films"), leaves));
  ASSERT_FALSE(Begin(Load("films"), stays));
  leaves.left.request_stop();
  EXPECT_THAT(leaves.results, IsEmpty());
  Report("films", 0.5);
  EXPECT_EQ(leaves.reason(), ErrorReason::kCancelled);
  EXPECT_THAT(stays.results, IsEmpty());
  stays.left.request_stop();
  clock_.Advance(kInterval);
  Report("films", 0.6);
  EXPECT_EQ(stays.reason(), ErrorReason::kCancelled);
  EXPECT_TRUE(changes_.Has("films")) << "nobody waits, and it goes on";
  changes_.End("films", Snapshot());
  EXPECT_EQ(leaves.results.size(), 1U);
  EXPECT_EQ(stays.results.size(), 1U);
}

TEST_F(ChangesUnderWayTest, ReleasesThoseWhoLeftWhenAnotherComes) {
  Told waits;
  Told films;
  ASSERT_TRUE(Begin(Load("films"), films));
  ASSERT_TRUE(Begin(Load("books"), waits));
  waits.left.request_stop();
  Told again;
  ASSERT_FALSE(Begin(Load("books"), again));
  EXPECT_EQ(waits.reason(), ErrorReason::kCancelled);
  EXPECT_THAT(again.results, IsEmpty());
  changes_.End("books", Snapshot());
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, KeepsPlacesForOtherCallersThanOne) {
  std::deque<Told> calls;
  const auto join = [&](std::optional<CallerKey> key) {
    ChangeCaller caller = calls.emplace_back().Caller();
    caller.key = key;
    bool began = false;
    return changes_.Join(Load("films"), std::move(caller), began);
  };
  constexpr int kHalf = 512;
  for (int i = 0; i < kHalf; ++i) ASSERT_TRUE(join(1).ok());
  const absl::Status refused = join(1);
  EXPECT_EQ(base::ReasonOf(refused), ErrorReason::kChangeQueueFull);
  EXPECT_THAT(
      std::string(refused.message()),
      testing::AllOf(testing::StartsWith("too many calls wait for changes: 512 of 1,024 places"),
                     testing::EndsWith("; try again when some have ended")));
  EXPECT_TRUE(join(2).ok());
  EXPECT_TRUE(join(std::nullopt).ok());
  calls[0].left.request_stop();
  calls[1].left.request_stop();
  EXPECT_TRUE(join(1).ok());
  changes_.End("films", Snapshot());
  EXPECT_TRUE(join(1).ok());
  changes_.End("films", Snapshot());
}

TEST_F(ChangesUnderWayTest, StopAnswersAllAndRefusesMore) {
  Told films;
  Told joined;
  Told books;
  ASSERT_TRUE(Begin(Load("films"), films));
  ASSERT_FALSE(Begin(Load("films"), joined));
  ASSERT_TRUE(Begin(Load("books"), books));
  changes_.Stop();
  for (const Told* told : {&films, &joined, &books}) {
    EXPECT_EQ(told->reason(), ErrorReason::kStopping);
  }
  EXPECT_EQ(base::ReasonOf(Refused(Load("films"))), ErrorReason::kStopping);
  EXPECT_FALSE(changes_.empty()) << "they go on";
  Report("films", 0.5);
  changes_.End("films", Snapshot());
  changes_.End("books", Snapshot());
  EXPECT_TRUE(changes_.empty());
  EXPECT_EQ(films.results.size(), 1U);
  changes_.Stop();
}

TEST_F(ChangesUnderWayTest, AnswersEveryCallerOnceWhateverComesTogether) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 500;
  std::atomic<int> answers = 0;
  std::atomic<int> refusals = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int call = 0; call < kCalls; ++call) {
        if (thread == 0 && call == kCalls / 2) changes_.Stop();
        ChangeCaller caller;
        caller.done = [&answers](const auto&) { ++answers; };
        std::stop_source left;
        if (call % 3 == 0) left.request_stop();
        caller.left = left.get_token();
        bool began = false;
        const ChangeRequest request = Load(call % 2 == 0 ? "films" : "books");
        if (!changes_.Join(request, std::move(caller), began).ok()) ++refusals;
        if (!began) continue;
        Report(request.collection, 0.5);
        changes_.End(request.collection, Snapshot());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answers + refusals, kThreads * kCalls);
  EXPECT_TRUE(changes_.empty());
}

}  // namespace
}  // namespace simile::service
