#include "engine/queue/schedule.h"

#include <array>
#include <functional>
#include <ostream>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::engine {

void PrintTo(const Schedule::Part& part, std::ostream* out) {
  *out << part.id << " x" << part.searches;
}

namespace {

using testing::ElementsAre;

constexpr int kFilms = 1;
constexpr int kBooks = 2;
constexpr std::uint64_t kValues = 1'000'000;

class ScheduleTest : public testing::Test {
 protected:
  // Of a snapshot whose passes are estimated to take a millisecond and another for each 10
  // searches.
  Schedule::Request Plain(std::uint32_t searches, const int& snapshot = kFilms,
                          Lane lane = Lane::kPlain) {
    return {.lane = lane, .shape = {&snapshot, kValues}, .searches = searches};
  }
  Schedule::Request Hard(double work_ms, const int& snapshot = kFilms, Lane lane = Lane::kHard) {
    return {.lane = lane,
            .hard = true,
            .shape = {&snapshot, kValues},
            .searches = 1,
            .work_ms = work_ms};
  }

  static Schedule::Request OnDevice(Schedule::Request request) {
    request.shape.can_pause = false;
    request.shape.pass_searches_max = 50;
    return request;
  }

  ScheduleTest() {
    for (const int& snapshot : {std::cref(kFilms), std::cref(kBooks)}) {
      for (int i = 0; i < 50; ++i) {
        for (std::uint32_t searches = 1; searches <= 1'024; searches *= 2) {
          schedule_.estimator().AddPass({&snapshot, kValues}, searches, 1 + searches / 10.0);
        }
      }
    }
  }

  std::vector<std::pair<std::uint64_t, std::uint32_t>> Next() {
    schedule_.Next(slice_);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> parts;
    for (const Schedule::Part& part : slice_.parts) parts.emplace_back(part.id, part.searches);
    return parts;
  }
  // Next, which takes so long, and the pass ends.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> Run(double ms) {
    auto parts = Next();
    schedule_.Charge(slice_, ms);
    return parts;
  }
  // Next, whose pass is paused after so long.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> Pause(double ms) {
    auto parts = Next();
    slice_.ends = false;
    schedule_.Charge(slice_, ms);
    return parts;
  }

  // Next, whose oldest hard task gets its search and so much work done.
  void RunHard(double ms, double work_ms) {
    Next();
    slice_.parts.front().searches_done = 1;
    slice_.parts.front().work_done_ms = work_ms;
    schedule_.Charge(slice_, ms);
  }

  using P = std::pair<std::uint64_t, std::uint32_t>;
  Schedule schedule_{1'024};
  Schedule::Slice slice_;
};

TEST_F(ScheduleTest, RunsWhatWaitsForOneSnapshotTogetherOldestFirst) {
  schedule_.Add(1, Plain(1));
  schedule_.Add(2, Plain(3, kBooks));
  schedule_.Add(3, Plain(2));
  EXPECT_THAT(Run(2), ElementsAre(P(1, 1), P(3, 2)));
  EXPECT_EQ(slice_.shape.snapshot, &kFilms);
  EXPECT_EQ(slice_.searches, 3U);
  EXPECT_NEAR(slice_.estimated_ms, 1.3, 0.2);
  EXPECT_THAT(Run(2), ElementsAre(P(2, 3)));
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(ScheduleTest, AnswersALargeTaskByOnePassInSlices) {
  schedule_.Add(1, Plain(500));  // 51 ms
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 500)));
  EXPECT_TRUE(slice_.begins);
  EXPECT_NEAR(slice_.estimated_ms, 51, 2);
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 500)));
  EXPECT_FALSE(slice_.begins);
  EXPECT_NEAR(slice_.estimated_ms, 31, 2);
  EXPECT_FALSE(schedule_.empty());
  EXPECT_THAT(Run(11), ElementsAre(P(1, 500)));
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(ScheduleTest, MakesPassesAsLongAsASliceWhereTheyCannotBePaused) {
  Schedule::Request request = Plain(500);
  request.shape.can_pause = false;
  schedule_.Add(1, request);  // 51 ms
  std::uint32_t left = 500;
  int slices = 0;
  while (!schedule_.empty()) {
    const auto parts = Run(20);
    ASSERT_EQ(parts.size(), 1U);
    EXPECT_LE(slice_.estimated_ms, kSliceMs);
    left -= parts[0].second;
    ++slices;
  }
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(slices, 3);
}

TEST_F(ScheduleTest, MakesPassesNoLargerThanTheirIndexAsksFor) {
  for (const bool can_pause : {false, true}) {
    for (const bool hard : {false, true}) {
      Schedule::Request request = hard ? Hard(1) : Plain(100);
      request.shape.can_pause = can_pause;
      request.shape.pass_searches_max = 16;
      schedule_.Add(1, request);
      schedule_.Next(slice_);
      EXPECT_EQ(slice_.searches, 16U);
      schedule_.Charge(slice_, 1);
      schedule_.Remove(1);
    }
  }
}

// One search takes 100 ms, each beside it another 5 ms.
TEST_F(ScheduleTest, LetsSearchesShareASliceWhereOneTakesMoreThanASlice) {
  const int archive = 3;
  for (int i = 0; i < 50; ++i) {
    for (std::uint32_t searches = 1; searches <= 64; searches *= 2) {
      schedule_.estimator().AddPass({&archive, 1'000 * kValues}, searches, 95 + searches * 5.0);
    }
  }
  for (std::uint64_t id = 1; id <= 64; ++id) {
    Schedule::Request request = Plain(1, archive);
    request.shape.values = 1'000 * kValues;
    request.shape.can_pause = false;
    schedule_.Add(id, request);
  }
  EXPECT_GT(Run(200).size(), 10U);
  EXPECT_LE(slice_.estimated_ms, 200);
}

TEST_F(ScheduleTest, RunsSmallTasksBetweenTheSlicesOfALargeOne) {
  schedule_.Add(1, Plain(500));
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 500)));
  for (std::uint64_t id = 2; id <= 11; ++id) schedule_.Add(id, Plain(1));
  EXPECT_TRUE(schedule_.EndsEarly(slice_, Plain(1)));
  EXPECT_THAT(Run(2), testing::SizeIs(10)) << "all small ones together";
  EXPECT_FALSE(slice_.large);
  EXPECT_FALSE(schedule_.EndsEarly(slice_, Plain(1))) << "it waits for the next such pass";
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 500)));
}

TEST_F(ScheduleTest, LetsNeitherSmallNorLargeTasksStarve) {
  double small = 0;
  double large = 0;
  std::uint64_t id = 1;
  schedule_.Add(id++, Plain(1'000));
  schedule_.Add(id++, Plain(1));
  for (int i = 0; i < 1'000; ++i) {
    Next();
    if (!slice_.large) schedule_.Add(id++, Plain(1));  // while its pass runs
    slice_.ends = !slice_.large;
    const double ms = slice_.large ? 20 : 2;
    (slice_.large ? large : small) += ms;
    schedule_.Charge(slice_, ms);
  }
  EXPECT_NEAR(small / (small + large), 0.75, 0.02);
}

TEST_F(ScheduleTest, AnswersAllThatWaitsByOnePass) {
  schedule_.Add(1, Plain(300));
  schedule_.Add(2, Plain(300));
  schedule_.Add(3, Plain(1));
  EXPECT_THAT(Run(1), ElementsAre(P(3, 1))) << "shortest first";
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 300), P(2, 300)));
  schedule_.Add(4, Plain(900));
  EXPECT_THAT(Run(20), ElementsAre(P(1, 300), P(2, 300)));
  schedule_.Add(5, Plain(900));
  EXPECT_THAT(Run(20), ElementsAre(P(4, 900), P(5, 124))) << "as many as a pass may have";
  EXPECT_THAT(Run(20), ElementsAre(P(5, 776)));
}

TEST_F(ScheduleTest, EndsThePassOfTasksThatAreRemoved) {
  schedule_.Add(1, Plain(300));
  schedule_.Add(2, Plain(300));
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 300), P(2, 300)));
  EXPECT_TRUE(schedule_.Remove(1));
  EXPECT_THAT(Pause(20), ElementsAre(P(2, 300)));
  EXPECT_EQ(slice_.searches, 600U) << "it was one search";
  EXPECT_TRUE(schedule_.Remove(2));
  EXPECT_TRUE(schedule_.empty());
}

// Passes that are paused hold memory.
TEST_F(ScheduleTest, BeginsShortPassesWhileSoManyAreUnderWay) {
  std::array<int, kPassesMax + 1> collections{};
  for (const int& collection : collections) {
    for (int i = 0; i < 50; ++i) {
      for (std::uint32_t searches = 1; searches <= 1'024; searches *= 2) {
        schedule_.estimator().AddPass({&collection, kValues}, searches, 1 + searches / 10.0);
      }
    }
  }
  std::uint64_t id = 1;
  for (const int& collection : collections) schedule_.Add(id++, Plain(1'000, collection));
  std::uint32_t of_last = 0;
  for (int i = 0; i < 20; ++i) {
    Next();
    slice_.ends = slice_.shape.snapshot == &collections.back();
    if (slice_.ends) {
      EXPECT_LE(slice_.estimated_ms, kSliceMs);
      of_last += slice_.searches;
    } else {
      EXPECT_EQ(slice_.searches, 1'000U);
    }
    schedule_.Charge(slice_, 20);
  }
  EXPECT_GT(of_last, 500U) << "it is not held up";
  // Passes of another lane hold nobody up.
  schedule_.Add(id, Plain(1'000, collections.front(), Lane::kBulk));
  schedule_.Add(id + 1, Plain(1'000, collections.back(), Lane::kBulk));
  for (int i = 0; i < 200 && slice_.lane != Lane::kBulk; ++i) {
    Next();
    slice_.ends = false;
    schedule_.Charge(slice_, 20);
  }
  EXPECT_EQ(slice_.lane, Lane::kBulk);
  EXPECT_EQ(slice_.searches, 1'000U);
}

// What a slice holds is corrected while tasks wait.
TEST_F(ScheduleTest, KeepsATaskSmallOrLargeAsItCame) {
  schedule_.Add(1, Plain(1));
  Next();
  schedule_.Add(2, Plain(40));  // a slice holds 190
  for (int i = 0; i < 50; ++i) {
    for (std::uint32_t searches = 1; searches <= 1'024; searches *= 2) {
      schedule_.estimator().AddPass({&kFilms, kValues}, searches, 10 + searches * 10.0);
    }
  }
  schedule_.Charge(slice_, 20);
  schedule_.Add(3, Plain(1));
  EXPECT_THAT(Run(20), testing::Contains(P(2, 40)));
  EXPECT_FALSE(slice_.large);
}

TEST_F(ScheduleTest, NeverLetsASmallTaskOvertakeOneThatDidNotFit) {
  Schedule schedule(16);
  for (std::uint64_t id = 1; id <= 7; ++id) schedule.Add(id, Plain(id == 5 ? 4 : 3));
  schedule.Add(8, Plain(1));
  schedule.Next(slice_);
  std::vector<std::uint64_t> ids;
  for (const auto& part : slice_.parts) ids.push_back(part.id);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 4, 5));  // 16 searches
  schedule.Charge(slice_, 3);
  schedule.Next(slice_);
  EXPECT_EQ(slice_.parts.front().id, 6U);
}

TEST_F(ScheduleTest, AlternatesBetweenLanesByTheirWeights) {
  std::array<double, kLaneCount> had{};
  std::uint64_t id = 1;
  for (int slice = 0; slice < 3'000; ++slice) {
    schedule_.Add(id++, Plain(1));
    if (slice == 0) {
      schedule_.Add(id++, Hard(1e9));
      schedule_.Add(id++, Hard(1e9, kFilms, Lane::kBulk));
    }
    Next();
    const double ms = slice_.lane == Lane::kPlain ? 1 : 20;
    had[static_cast<std::size_t>(slice_.lane)] += ms;
    schedule_.Charge(slice_, ms);
  }
  const double all = had[0] + had[1] + had[2];
  EXPECT_NEAR(had[0] / all, 0.70, 0.02);
  EXPECT_NEAR(had[1] / all, 0.24, 0.02);
  EXPECT_NEAR(had[2] / all, 0.06, 0.02);
}

TEST_F(ScheduleTest, RunsAPlainTaskRightAfterTheSliceOfAHardOne) {
  schedule_.Add(1, Hard(10'000));
  for (int i = 0; i < 50; ++i) Run(20);
  for (std::uint64_t id = 2; id < 40; ++id) {
    schedule_.Add(id, Plain(1));
    EXPECT_THAT(Run(1), ElementsAre(P(id, 1)));
    EXPECT_THAT(Run(20), ElementsAre(P(1, 0)));
  }
}

TEST_F(ScheduleTest, SharesALaneBetweenCollectionsByTimeAndNotByCount) {
  double films = 0;
  double books = 0;
  std::uint64_t id = 1;
  schedule_.Add(id++, Plain(1));
  schedule_.Add(id++, Plain(1, kBooks));
  for (int i = 0; i < 1'000; ++i) {
    Next();
    const bool is_films = slice_.shape.snapshot == &kFilms;
    const double ms = is_films ? 1 : 15;
    (is_films ? films : books) += ms;
    schedule_.Charge(slice_, ms);
    schedule_.Add(id++, is_films ? Plain(1) : Plain(1, kBooks));
  }
  EXPECT_NEAR(films / books, 1, 0.05);
}

TEST_F(ScheduleTest, GivesACollectionNoMoreForListsOfManyLengths) {
  double films = 0;
  double books = 0;
  std::uint64_t id = 1;
  for (int i = 0; i < 1'000; ++i) {
    for (std::uint32_t k_class = 0; k_class < 4; ++k_class) {
      Schedule::Request request = Plain(1);
      request.shape.k_class = k_class;
      schedule_.Add(id++, request);
    }
    schedule_.Add(id++, Plain(1, kBooks));
    Next();
    (slice_.shape.snapshot == &kFilms ? films : books) += 5;
    schedule_.Charge(slice_, 5);
  }
  EXPECT_NEAR(films / books, 1, 0.05);
}

TEST_F(ScheduleTest, GivesACollectionNoLessForListsOfAnotherLengthNowAndThen) {
  double films = 0;
  double books = 0;
  std::uint64_t id = 1;
  for (int i = 0; i < 1'000; ++i) {
    Schedule::Request seldom = Plain(1);
    seldom.shape.k_class = 3;
    schedule_.Add(id++, seldom);
    for (int slice = 0; slice < 3; ++slice) {
      schedule_.Add(id++, Plain(1));
      schedule_.Add(id++, Plain(1, kBooks));
      Next();
      const double ms = slice_.shape.k_class == 3 ? 0.5 : 20;
      (slice_.shape.snapshot == &kFilms ? films : books) += ms;
      schedule_.Charge(slice_, ms);
    }
  }
  EXPECT_NEAR(films / books, 1, 0.05);
}

TEST_F(ScheduleTest, GivesAnIdleCollectionNothingForItsIdleTime) {
  std::uint64_t id = 1;
  for (int i = 0; i < 100; ++i) {
    schedule_.Add(id++, Plain(1));
    Run(10);
  }
  schedule_.Add(id++, Plain(1));
  schedule_.Add(id++, Plain(1, kBooks));
  Run(10);
  const void* const first = slice_.shape.snapshot;
  schedule_.Add(id++, first == &kFilms ? Plain(1) : Plain(1, kBooks));
  Run(10);
  EXPECT_NE(slice_.shape.snapshot, first);
}

TEST_F(ScheduleTest, GivesAllHardTasksOfASnapshotTheSameSlice) {
  schedule_.Add(1, Hard(100));
  schedule_.Add(2, Hard(100));
  EXPECT_THAT(Run(20), ElementsAre(P(1, 0), P(2, 0)));
  EXPECT_TRUE(slice_.hard);
  EXPECT_GT(slice_.searches, 100U);
  EXPECT_TRUE(schedule_.Remove(1));
  EXPECT_THAT(Run(20), ElementsAre(P(2, 0)));
  EXPECT_TRUE(schedule_.Remove(2));
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(ScheduleTest, BeginsNoMoreHardTasksThanASearchMayHold) {
  Schedule schedule(2);
  for (std::uint64_t id = 1; id <= 4; ++id) schedule.Add(id, Hard(100));
  const auto next = [&] {
    schedule.Next(slice_);
    schedule.Charge(slice_, 20);
    std::vector<std::uint64_t> ids;
    for (const auto& part : slice_.parts) ids.push_back(part.id);
    return ids;
  };
  EXPECT_THAT(next(), ElementsAre(1, 2));
  EXPECT_TRUE(schedule.Remove(1));
  EXPECT_THAT(next(), ElementsAre(2, 3)) << "those that have begun stay";
}

// What has not begun can still be counted, cancelled and refused.
TEST_F(ScheduleTest, LetsHardTasksWaitWhileOlderOnesFillASearch) {
  Schedule::Request large = Hard(100);
  large.searches = 2'000;
  schedule_.Add(1, large);
  schedule_.Add(2, Hard(100));
  EXPECT_THAT(Run(20), ElementsAre(P(1, 0)));
  slice_.parts[0].searches_done = 2'000;
  schedule_.Charge(slice_, 20);
  EXPECT_THAT(Run(20), ElementsAre(P(1, 0))) << "it is still under way";
  EXPECT_TRUE(schedule_.Remove(1));
  EXPECT_THAT(Run(20), ElementsAre(P(2, 0)));
}

TEST_F(ScheduleTest, EstimatesOnlyWhatIsLeftOfHardTasks) {
  schedule_.Add(1, Hard(1'000));
  EXPECT_NEAR(schedule_.LaneMs(Lane::kHard), 1'001, 1);
  for (int slice = 0; slice < 45; ++slice) {
    RunHard(20, 20);
  }
  EXPECT_NEAR(schedule_.LaneMs(Lane::kHard), 100, 1e-6);
  EXPECT_LT(schedule_.AnswerMs(Hard(10)), 115);
  schedule_.Add(2, Hard(300));
  RunHard(500, 500);
  EXPECT_NEAR(schedule_.LaneMs(Lane::kHard), 301, 1)
      << "the estimate was too low, which says nothing of the next task";
  EXPECT_TRUE(schedule_.Remove(1));
  EXPECT_TRUE(schedule_.Remove(2));
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(ScheduleTest, KeepsLongListsApartFromShortOnes) {
  Schedule::Request deep = Plain(50);
  deep.shape.k_class = 5;
  schedule_.Add(1, deep);
  schedule_.Add(2, Plain(1));
  EXPECT_FALSE(schedule_.IsSmall(10)) << "50 searches for thousands of rows each";
  EXPECT_THAT(Pause(20), ElementsAre(P(1, 50)));
  EXPECT_THAT(Run(1), ElementsAre(P(2, 1)));
}

// The first search of a collection is alone, and cold.
TEST_F(ScheduleTest, SizesSlicesByTheFastestPassAndNotByTheFirst) {
  const int archive = 3;
  schedule_.estimator().AddPass({&archive, kValues}, 1, 300);
  for (int i = 0; i < 50; ++i) schedule_.estimator().AddPass({&archive, kValues}, 64, 18);
  for (std::uint64_t id = 1; id <= 1'000; ++id) {
    Schedule::Request request = Plain(1, archive);
    request.shape.can_pause = false;
    schedule_.Add(id, request);
  }
  Run(20);
  EXPECT_LE(slice_.estimated_ms, 2 * 18);
}

TEST_F(ScheduleTest, ForgetsWhatIsRemoved) {
  schedule_.Add(1, Plain(500));
  schedule_.Add(2, Plain(1));
  Run(10);
  EXPECT_TRUE(schedule_.Remove(1));
  EXPECT_FALSE(schedule_.Remove(1));
  EXPECT_FALSE(schedule_.Remove(2)) << "its only search was taken";
  EXPECT_TRUE(schedule_.empty());
  EXPECT_NEAR(schedule_.LaneMs(Lane::kPlain), 0, 1e-9);
}

TEST_F(ScheduleTest, EstimatesTheTimeToAnAnswer) {
  EXPECT_NEAR(schedule_.AnswerMs(Plain(1)), 1.1, 0.1);
  for (std::uint64_t id = 1; id <= 10; ++id) schedule_.Add(id, Plain(1));
  EXPECT_NEAR(schedule_.AnswerMs(Plain(1)), 2.1, 0.3) << "a pass for all that waits";
  schedule_.Add(11, Plain(1'000));
  EXPECT_LT(schedule_.AnswerMs(Plain(1)), 15) << "a large task only gets its share before it";
  EXPECT_GT(schedule_.AnswerMs(Plain(500)), 100) << "another large one waits for all of it";
  // Another collection takes turns with this one; other lanes take theirs.
  EXPECT_LT(schedule_.AnswerMs(Plain(1, kBooks)), 5);
  schedule_.Add(12, Hard(1'000));
  const double beside_hard = schedule_.AnswerMs(Plain(1, kBooks));
  EXPECT_GT(schedule_.AnswerMs(Hard(1)), 900);
  EXPECT_LT(beside_hard, 7);
}

// On a device, whose passes have at most 50 searches and take 6 ms.
TEST_F(ScheduleTest, ChoosesAFullPassBesideTheOneThatADeviceWorksOn) {
  schedule_.Add(1, OnDevice(Plain(120)));
  EXPECT_THAT(Next(), ElementsAre(std::pair(1, 50)));
  Schedule::Slice next;
  ASSERT_TRUE(schedule_.NextFullPass(slice_, next));
  EXPECT_TRUE(next.begins);
  EXPECT_EQ(next.searches, 50U);
  EXPECT_FALSE(schedule_.empty());
  schedule_.Charge(slice_, 6);
  Schedule::Slice rest;
  EXPECT_FALSE(schedule_.NextFullPass(next, rest)) << "20 searches could become more";
  schedule_.Charge(next, 6);
  schedule_.Next(rest);
  EXPECT_EQ(rest.searches, 20U);
  schedule_.Charge(rest, 3);
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(ScheduleTest, ChargesThePassThatADeviceWorksOnBeforeItChoosesTheNext) {
  schedule_.Add(1, OnDevice(Plain(100, kFilms)));
  schedule_.Add(2, OnDevice(Plain(50, kBooks)));
  EXPECT_THAT(Next(), ElementsAre(std::pair(1, 50)));
  Schedule::Slice next;
  ASSERT_TRUE(schedule_.NextFullPass(slice_, next));
  EXPECT_EQ(next.parts.front().id, 2U) << "the other collection has had less";
  schedule_.Charge(slice_, 6);
  schedule_.Charge(next, 6);
}

TEST_F(ScheduleTest, ChoosesNoPassBesideAnotherThatTogetherTakeLongerThanASlice) {
  Schedule::Request request = OnDevice(Plain(300));
  request.shape.pass_searches_max = 100;  // 11 ms
  schedule_.Add(1, request);
  EXPECT_THAT(Next(), ElementsAre(std::pair(1, 100)));
  Schedule::Slice next;
  EXPECT_FALSE(schedule_.NextFullPass(slice_, next));
  // The pass goes on as if nothing had been asked.
  EXPECT_FALSE(slice_.runs_to_end);
  slice_.ends = false;
  schedule_.Charge(slice_, 5);
  EXPECT_THAT(Next(), ElementsAre(std::pair(1, 100)));
  EXPECT_FALSE(slice_.begins);
}

// The next turn is that of a hard task, so the full pass of plain tasks waits.
TEST_F(ScheduleTest, LetsNoPassGoBeforeTheNextTurn) {
  schedule_.Add(1, OnDevice(Plain(100)));
  EXPECT_THAT(Next(), ElementsAre(std::pair(1, 50)));
  schedule_.Add(2, Hard(5, kFilms, Lane::kPlain));
  Schedule::Slice next;
  EXPECT_TRUE(schedule_.HasFullPass());
  EXPECT_FALSE(schedule_.NextFullPass(slice_, next));
  schedule_.Charge(slice_, 6);
  EXPECT_EQ(Next().front().first, 2U);
  EXPECT_TRUE(slice_.hard);
}

// A task that is removed takes nothing from the pass that begins after its own.
TEST_F(ScheduleTest, KeepsThePassesBesideEachOtherApart) {
  schedule_.Add(1, OnDevice(Plain(100)));
  EXPECT_THAT(Next(), ElementsAre(std::pair(1, 50)));
  Schedule::Slice next;
  ASSERT_TRUE(schedule_.NextFullPass(slice_, next));
  EXPECT_TRUE(schedule_.Remove(1));
  schedule_.Charge(slice_, 6);
  schedule_.Add(2, OnDevice(Plain(3)));
  schedule_.Charge(next, 6);
  EXPECT_THAT(Run(1), ElementsAre(std::pair(2, 3)));
  EXPECT_TRUE(schedule_.empty());
}

TEST_F(ScheduleTest, KnowsWhetherAllThatWaitsIsSmall) {
  EXPECT_TRUE(schedule_.IsSmall(0));
  schedule_.Add(1, Plain(1));
  EXPECT_TRUE(schedule_.IsSmall(1.5));
  schedule_.Add(2, Plain(1, kBooks));
  EXPECT_FALSE(schedule_.IsSmall(1.5));
  EXPECT_TRUE(schedule_.IsSmall(3));
  schedule_.Add(3, Hard(0));
  EXPECT_FALSE(schedule_.IsSmall(1'000)) << "what a hard task takes is not known";
}

}  // namespace
}  // namespace simile::engine
