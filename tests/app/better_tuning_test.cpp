#include "app/tuning/better_tuning.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace simile::app {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A number of threads with which three kinds of search take these times; each took 1 s before.
TriedThreads Tried(unsigned threads, const std::vector<double>& after_s) {
  TriedThreads tried{threads, {}};
  for (const double time : after_s) {
    tried.workloads.push_back({{0, tried.workloads.size() + 1, 0}, 1, time});
  }
  return tried;
}

TEST(OtherThreadsTest, AreQuartersOfTheUsableOnes) {
  EXPECT_THAT(OtherThreads(8, 8), ElementsAre(6, 4, 2));
  EXPECT_THAT(OtherThreads(8, 4), ElementsAre(8, 6, 2));
  EXPECT_THAT(OtherThreads(8, 3), ElementsAre(8, 6, 4, 2));
  EXPECT_THAT(OtherThreads(3, 3), ElementsAre(2, 1));
  EXPECT_THAT(OtherThreads(2, 2), ElementsAre(1));
  EXPECT_THAT(OtherThreads(1, 1), IsEmpty());
}

TEST(ServiceWorkloadsTest, AreTheBatchesOfEachCollectionAndAFilter) {
  EXPECT_THAT(
      ServiceWorkloads(2, 16),
      ElementsAre(Workload{0, 1, 20}, Workload{0, 1, 0}, Workload{1, 1, 20}, Workload{1, 1, 0},
                  Workload{0, 4, 0}, Workload{1, 4, 0}, Workload{0, 16, 0}, Workload{1, 16, 0}));
}

TEST(ChooseThreadsTest, TakesTheBestOfTheBetterNumbers) {
  const BetterTuning better = ChooseThreads(
      8, {Tried(6, {0.8, 0.9, 1}), Tried(4, {0.7, 0.8, 0.9}), Tried(2, {0.9, 0.9, 0.9})}, 0);
  EXPECT_TRUE(better.is_changed());
  EXPECT_EQ(better.threads_before, 8U);
  EXPECT_EQ(better.threads_after, 4U);
  ASSERT_EQ(better.workloads.size(), 3U);
  EXPECT_DOUBLE_EQ(better.workloads[0].before_s, 1);
  EXPECT_DOUBLE_EQ(better.workloads[0].after_s, 0.7);
}

TEST(ChooseThreadsTest, StaysWhereNoneIsClearlyBetter) {
  const BetterTuning better =
      ChooseThreads(8, {Tried(6, {0.96, 0.96, 0.96}), Tried(4, {1.5, 2, 2})}, 0);
  EXPECT_EQ(better.conclusion, ThreadsConclusion::kNoneBetter);
  EXPECT_EQ(better.threads_after, 8U);
  for (const TimedWorkload& each : better.workloads) EXPECT_DOUBLE_EQ(each.after_s, 1);
}

TEST(ChooseThreadsTest, StaysWhereAKindOfSearchBecomesSlower) {
  EXPECT_EQ(ChooseThreads(8, {Tried(4, {0.5, 0.5, 1.03})}, 0).conclusion,
            ThreadsConclusion::kNoneBetter);
  EXPECT_TRUE(ChooseThreads(8, {Tried(4, {0.5, 0.5, 1.01})}, 0).is_changed());
}

TEST(ChooseThreadsTest, StaysOnABusyMachine) {
  const BetterTuning better = ChooseThreads(8, {Tried(4, {0.5, 0.5, 0.5})}, 0.4);
  EXPECT_EQ(better.conclusion, ThreadsConclusion::kBusy);
  EXPECT_EQ(better.threads_after, 8U);
  EXPECT_DOUBLE_EQ(better.other_load, 0.4);
  EXPECT_DOUBLE_EQ(better.workloads[0].after_s, 1);
}

TEST(ChooseThreadsTest, StaysWithoutAChoice) {
  EXPECT_EQ(ChooseThreads(8, {Tried(8, {0.5, 0.5, 0.5})}, 0).conclusion,
            ThreadsConclusion::kNoChoice);
}

TEST(ChooseThreadsTest, LeavesOutNumbersThatWereNotMeasured) {
  const TriedThreads unmeasured = Tried(2, {0.1, 0.1, 0});
  EXPECT_EQ(ChooseThreads(8, {unmeasured}, 0).conclusion, ThreadsConclusion::kNoTime);
  EXPECT_EQ(ChooseThreads(8, {unmeasured, Tried(4, {0.5, 0.5, 0.5})}, 0).threads_after, 4U);
}

TEST(SufficientBatchTest, IsTheSmallestNearTheBestRate) {
  std::vector<TimedWorkload> workloads;
  // 100, 400, 960 and 1,000 queries a second.
  for (const auto& [batch, after_s] :
       std::vector<std::pair<std::size_t, double>>{{1, 0.01}, {4, 0.01}, {96, 0.1}, {1'000, 1}}) {
    workloads.push_back({{0, batch, 0}, 1, after_s});
  }
  workloads.push_back({{0, 1, 20}, 1, 1e-6});  // a filter: another kind of search
  workloads.push_back({{1, 1, 0}, 1, 1e-6});   // another collection
  workloads.push_back({{2, 1, 0}, 0, 0});      // not measured
  EXPECT_EQ(SufficientBatch(workloads, 0), 96U);
  EXPECT_EQ(SufficientBatch(workloads, 1), 1U);
  EXPECT_EQ(SufficientBatch(workloads, 2), 0U);
}

TEST(WorkloadTextTest, NamesCollectionBatchAndFilter) {
  const std::vector<TunedShape> shapes{{"films", 1, 1, 1}};
  EXPECT_EQ(WorkloadText({0, 1, 0}, shapes), "films, 1 query");
  EXPECT_EQ(WorkloadText({0, 1'024, 16}, shapes), "films, 1,024 queries, filter 1 in 16");
}

}  // namespace
}  // namespace simile::app
