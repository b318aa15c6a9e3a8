// Thousands of random arrival patterns in simulated time: what the schedule promises holds for
// each.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/queue/schedule.h"

namespace simile::engine {
namespace {

// A collection whose passes take pass_ms and search_ms for each search, whatever is estimated.
struct SimulatedCollection {
  std::uint64_t values = 0;
  double pass_ms = 0;
  double search_ms = 0;
};

struct SimulatedTask {
  double arrives_ms = 0;
  Lane lane = Lane::kPlain;
  bool hard = false;
  std::size_t collection = 0;
  std::uint32_t searches = 1;
  double work_ms = 0;  // of a hard one
  double answered_ms = -1;
  double estimated_ms = 0;  // when it arrived
};

// Runs tasks on one simulated device and keeps what it saw.
class Simulation {
 public:
  Simulation(std::vector<SimulatedCollection> collections, std::vector<SimulatedTask> tasks)
      : collections_(std::move(collections)), tasks_(std::move(tasks)) {
    std::ranges::stable_sort(tasks_, {}, &SimulatedTask::arrives_ms);
    for (SimulatedTask& task : tasks_) left_.push_back(task.hard ? task.work_ms : task.searches);
  }

  // What passes of some sizes take, as it is measured when a collection is loaded.
  void MeasureAtLoad() {
    for (const SimulatedCollection& collection : collections_) {
      for (const std::uint32_t searches : {1U, 8U, 64U, 512U}) {
        schedule_.estimator().AddPass({&collection, collection.values}, searches,
                                      collection.pass_ms + searches * collection.search_ms);
      }
    }
  }

  void Run() {
    Schedule::Slice slice;
    while (next_ < tasks_.size() || !schedule_.empty()) {
      if (schedule_.empty()) now_ms_ = std::max(now_ms_, tasks_[next_].arrives_ms);
      while (next_ < tasks_.size() && tasks_[next_].arrives_ms <= now_ms_) Arrive(next_++);
      schedule_.Next(slice);
      if (slice.begins) {
        ExpectAllThatWait(slice);
        for (const Schedule::Part& part : slice.parts) begun_.insert(part.id);
      }
      const double ms = slice.hard ? RunHard(slice) : RunPlain(slice);
      schedule_.Charge(slice, ms);
      lane_ms_[static_cast<std::size_t>(slice.lane)] += ms;
      now_ms_ += ms;
      for (const Schedule::Part& part : slice.parts) {
        SimulatedTask& task = tasks_[part.id];
        if (left_[part.id] <= 1e-9 && task.answered_ms < 0) {
          task.answered_ms = now_ms_;
          if (task.hard) schedule_.Remove(part.id);
        }
      }
    }
  }

  const std::vector<SimulatedTask>& tasks() const { return tasks_; }
  double now_ms() const { return now_ms_; }
  double lane_ms(Lane lane) const { return lane_ms_[static_cast<std::size_t>(lane)]; }

 private:
  static constexpr std::uint32_t kSearchesMax = 1'024;
  static constexpr double kPieceMs = 5;

  Schedule::Request MakeRequest(const SimulatedTask& task) const {
    return {.lane = task.lane,
            .hard = task.hard,
            .shape = {&collections_[task.collection], collections_[task.collection].values},
            .searches = task.searches,
            .work_ms = task.work_ms};
  }

  void Arrive(std::size_t index) {
    SimulatedTask& task = tasks_[index];
    const Schedule::Request request = MakeRequest(task);
    task.estimated_ms = schedule_.AnswerMs(request);
    schedule_.Add(index, request);
  }

  // A slice of a pass: until it is done, or kSliceMs have passed, or something has come for which
  // it ends early; and then to the end of a piece.
  double RunPlain(Schedule::Slice& slice) {
    const auto& collection = *static_cast<const SimulatedCollection*>(slice.shape.snapshot);
    const auto key = std::tuple(slice.lane, slice.shape.snapshot, slice.large);
    const double whole_ms = collection.pass_ms + slice.searches * collection.search_ms;
    if (slice.begins) pass_left_ms_[key] = whole_ms;
    double& left_ms = pass_left_ms_[key];
    const auto until_piece_ends = [&](double ms) {
      return std::min(left_ms, std::ceil(ms / kPieceMs) * kPieceMs);
    };
    double ms = until_piece_ends(kSliceMs);
    for (; next_ < tasks_.size() && tasks_[next_].arrives_ms <= now_ms_ + ms; ++next_) {
      Arrive(next_);
      const Schedule::Request request = MakeRequest(tasks_[next_]);
      if (schedule_.EndsEarly(slice, request)) {
        ms = std::min(ms, until_piece_ends(tasks_[next_].arrives_ms - now_ms_));
      }
    }
    left_ms -= ms;
    slice.ends = left_ms < 1e-9;
    if (!slice.ends) return ms;
    for (const Schedule::Part& part : slice.parts) {
      EXPECT_GT(part.searches, 0U);
      left_[part.id] -= part.searches;
      EXPECT_GE(left_[part.id], 0);
    }
    schedule_.estimator().AddPass(slice.shape, slice.searches, whole_ms);
    return ms;
  }

  // A pass that is not full has all the small tasks of its group that wait, or all large ones.
  void ExpectAllThatWait(const Schedule::Slice& slice) {
    std::uint32_t searches = 0;
    std::uint32_t least = kSearchesMax;
    std::uint32_t most = 0;
    for (const Schedule::Part& part : slice.parts) {
      searches += part.searches;
      least = std::min(least, tasks_[part.id].searches);
      most = std::max(most, tasks_[part.id].searches);
    }
    ASSERT_EQ(searches, slice.searches);
    for (std::size_t i = 0; i < next_; ++i) {
      const SimulatedTask& task = tasks_[i];
      if (task.hard || task.lane != slice.lane || task.answered_ms >= 0 || IsUnderWay(i, slice) ||
          &collections_[task.collection] != slice.shape.snapshot) {
        continue;
      }
      if (searches + task.searches > slice.searches_max) break;  // nor does what has come after it
      if (slice.large) {
        ASSERT_LT(task.searches, least) << "task " << i << " waits beside the pass";
      } else {
        ASSERT_GT(task.searches, most) << "task " << i << " waits beside the pass";
      }
    }
  }
  // In this pass, or in the other of its group.
  bool IsUnderWay(std::size_t index, const Schedule::Slice& slice) const {
    return begun_.contains(index) ||
           std::ranges::any_of(slice.parts,
                               [&](const Schedule::Part& part) { return part.id == index; });
  }

  // The oldest first, as long as the slice lasts.
  double RunHard(Schedule::Slice& slice) {
    double ms = 0;
    for (Schedule::Part& part : slice.parts) {
      const double work_ms = std::min(left_[part.id], kSliceMs - ms);
      part.searches_done = tasks_[part.id].searches;
      part.work_done_ms = work_ms;
      left_[part.id] -= work_ms;
      ms += work_ms;
    }
    return std::max(ms, 1e-3);
  }

  const std::vector<SimulatedCollection> collections_;
  std::vector<SimulatedTask> tasks_;
  std::vector<double> left_;  // [tasks] searches, or milliseconds of work
  Schedule schedule_{kSearchesMax};
  std::size_t next_ = 0;         // that arrives
  std::set<std::size_t> begun_;  // tasks of passes
  std::map<std::tuple<Lane, const void*, bool>, double> pass_left_ms_;
  double now_ms_ = 0;
  std::array<double, kLaneCount> lane_ms_{};
};

class ScheduleSimulationTest : public testing::Test {
 protected:
  static constexpr int kPatterns = 400;

  double Uniform(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random_);
  }
  std::uint64_t Below(std::uint64_t count) { return random_() % count; }

  // 1 to 4 collections, from a film list to ten million rows.
  std::vector<SimulatedCollection> RandomCollections() {
    std::vector<SimulatedCollection> collections(1 + Below(4));
    for (SimulatedCollection& collection : collections) {
      const double rows = std::pow(10, Uniform(3, 6.7));
      collection.values = static_cast<std::uint64_t>(rows * 384);
      // Up to ten times slower or faster than the model that estimates begin with.
      const double speed = std::pow(10, Uniform(-1, 1));
      collection.pass_ms = speed * (0.01 + rows * 1.2e-5);
      collection.search_ms = speed * (0.005 + rows * 8e-7);
    }
    return collections;
  }

  std::vector<SimulatedTask> RandomTasks(std::size_t collection_count) {
    std::vector<SimulatedTask> tasks(50 + Below(300));
    const double span_ms = std::pow(10, Uniform(1, 4));
    for (SimulatedTask& task : tasks) {
      task.arrives_ms = Uniform(0, span_ms);
      task.collection = Below(collection_count);
      task.hard = Below(5) == 0;
      task.lane = Below(6) == 0 ? Lane::kBulk : task.hard ? Lane::kHard : Lane::kPlain;
      task.searches = Below(20) == 0 ? static_cast<std::uint32_t>(1 + Below(1'024)) : 1;
      task.work_ms = task.hard ? std::pow(10, Uniform(-2, 3)) : 0;
    }
    return tasks;
  }

  std::mt19937_64 random_;
};

TEST_F(ScheduleSimulationTest, AnswersEveryTaskInSlicesWithoutIdling) {
  for (std::uint64_t seed = 1; seed <= kPatterns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    const auto collections = RandomCollections();
    const auto tasks = RandomTasks(collections.size());
    Simulation simulation(collections, tasks);
    simulation.Run();
    for (const SimulatedTask& task : simulation.tasks()) {
      ASSERT_GE(task.answered_ms, task.arrives_ms);
    }
  }
}

// Passes are as the estimates say, so that nothing but the schedule decides.
TEST_F(ScheduleSimulationTest, KeepsSlicesShortOnceItHasMeasured) {
  for (std::uint64_t seed = 1; seed <= kPatterns; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    CostEstimator estimator;
    const SimulatedCollection collection = RandomCollections().front();
    const CostEstimator::Shape shape{&collection, collection.values};
    const auto true_ms = [&](std::uint32_t searches) {
      return collection.pass_ms + searches * collection.search_ms;
    };
    for (int round = 0; round < 30; ++round) {
      for (std::uint32_t searches = 1; searches <= 1'024; searches *= 2) {
        estimator.AddPass(shape, searches, true_ms(searches));
      }
    }
    const std::uint32_t within = estimator.SearchesWithin(shape, kSliceMs, 1'024);
    ASSERT_LE(true_ms(within), std::max(1.5 * kSliceMs, true_ms(1)));
    if (within < 1'024) {
      ASSERT_GE(true_ms(within + 1), 0.5 * kSliceMs) << "slices are not needlessly short";
    }
  }
}

TEST_F(ScheduleSimulationTest, GivesBulkItsShareBesideFullLanes) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    const auto collections = RandomCollections();
    std::vector<SimulatedTask> tasks;
    for (int i = 0; i < 400; ++i) {
      SimulatedTask task;
      task.collection = Below(collections.size());
      task.lane = static_cast<Lane>(Below(kLaneCount));
      task.hard = task.lane == Lane::kHard || (task.lane == Lane::kBulk && Below(2) == 0);
      task.searches = task.hard ? 1 : 64;
      task.work_ms = task.hard ? Uniform(1, 200) : 0;
      tasks.push_back(task);
    }
    Simulation simulation(collections, tasks);
    simulation.Run();
    // While the other lanes were full, bulk work was answered too: its time until the last plain
    // and hard answer is at least its share.
    double others_end_ms = 0;
    double bulk_begins_ms = simulation.now_ms();
    for (const SimulatedTask& task : simulation.tasks()) {
      if (task.lane == Lane::kBulk) {
        bulk_begins_ms = std::min(bulk_begins_ms, task.answered_ms);
      } else {
        others_end_ms = std::max(others_end_ms, task.answered_ms);
      }
    }
    const double others_ms = simulation.lane_ms(Lane::kPlain) + simulation.lane_ms(Lane::kHard);
    // Bulk ran in [0, others_end]: what is not the others' is its own.
    const double bulk_ms = others_end_ms - others_ms;
    const double wanted_ms = std::min(0.05 * others_end_ms - 200, simulation.lane_ms(Lane::kBulk));
    ASSERT_GE(bulk_ms, wanted_ms);
  }
}

// Singles of one collection beside large calls, hard work, bulk work and other collections: the
// wait is bounded by the others' slices, not by their work.
TEST_F(ScheduleSimulationTest, BoundsTheWaitOfAPlainSingle) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    std::vector<SimulatedCollection> collections(2);
    collections[0] = {5'000ULL * 384, 0.05, 0.01};
    collections[1] = {62'423ULL * 384, 0.7, 0.08};
    std::vector<SimulatedTask> tasks;
    for (int i = 0; i < 200; ++i) {  // one at a time, well below what the device can do
      tasks.push_back({.arrives_ms = i * 25.0 + Uniform(0, 10)});
    }
    for (int i = 0; i < 20; ++i) {
      const double arrives = Uniform(0, 3'000);
      switch (Below(4)) {
        case 0:
          tasks.push_back({.arrives_ms = arrives, .collection = 1, .searches = 1'024});
          break;
        case 1:
          tasks.push_back({.arrives_ms = arrives, .collection = 0, .searches = 1'024});
          break;
        case 2:
          tasks.push_back(
              {.arrives_ms = arrives, .lane = Lane::kHard, .hard = true, .work_ms = 300});
          break;
        default:
          tasks.push_back({.arrives_ms = arrives,
                           .lane = Lane::kBulk,
                           .hard = true,
                           .collection = 1,
                           .work_ms = 300});
      }
    }
    Simulation simulation(collections, tasks);
    simulation.Run();
    std::vector<double> waits;
    for (const SimulatedTask& task : simulation.tasks()) {
      if (task.lane == Lane::kPlain && task.searches == 1) {
        waits.push_back(task.answered_ms - task.arrives_ms);
      }
    }
    std::ranges::sort(waits);
    // The slice under way, one of another collection or lane, and its own, which holds a part of a
    // large call of the same collection.
    ASSERT_LE(waits[waits.size() * 99 / 100], 3 * kSliceMs);
  }
}

TEST_F(ScheduleSimulationTest, MakesAPlainSingleWaitForOneSliceOfHardAndBulkWork) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random_.seed(seed);
    std::vector<SimulatedTask> tasks;
    for (int i = 0; i < 200; ++i) tasks.push_back({.arrives_ms = i * 25.0 + Uniform(0, 10)});
    for (int i = 0; i < 20; ++i) {
      const bool bulk = Below(2) == 0;
      tasks.push_back({.arrives_ms = Uniform(0, 3'000),
                       .lane = bulk ? Lane::kBulk : Lane::kHard,
                       .hard = !bulk || Below(2) == 0,
                       .searches = bulk ? 1'024U : 1U,
                       .work_ms = 300});
    }
    Simulation simulation({{5'000ULL * 384, 0.05, 0.01}}, tasks);
    simulation.Run();
    for (const SimulatedTask& task : simulation.tasks()) {
      if (task.lane != Lane::kPlain) continue;
      ASSERT_LE(task.answered_ms - task.arrives_ms, 1.2 * kSliceMs);
    }
  }
}

// 64 callers of singles without pause, and calls of 1,024 queries one after the other.
TEST_F(ScheduleSimulationTest, LetsLargeCallsAndSinglesPassEachOther) {
  const std::vector<SimulatedCollection> collections = {{62'423ULL * 384, 0.7, 0.08}};
  const auto slowest = [&](bool with_large) {
    std::vector<SimulatedTask> tasks;
    for (int i = 0; i < 4'000; ++i) tasks.push_back({.arrives_ms = i / 64 * 8.0});
    if (with_large) {
      for (int i = 0; i < 3; ++i) {
        tasks.push_back({.arrives_ms = i * 150.0, .searches = 1'024});
      }
    }
    Simulation simulation(collections, tasks);
    simulation.Run();
    std::vector<double> singles;
    double large = 0;
    for (const SimulatedTask& task : simulation.tasks()) {
      const double took = task.answered_ms - task.arrives_ms;
      if (task.searches == 1) {
        singles.push_back(took);
      } else {
        large = std::max(large, took);
      }
    }
    std::ranges::sort(singles);
    return std::pair(singles[singles.size() * 99 / 100], large);
  };
  const auto [alone_ms, none] = slowest(false);
  const auto [beside_ms, large_ms] = slowest(true);
  EXPECT_LE(beside_ms, 2 * alone_ms + kSliceMs);
  EXPECT_LE(large_ms, 2'000);
}

// What admission decides by: the estimate is neither far below nor far above the truth.
TEST_F(ScheduleSimulationTest, EstimatesAnswersWellEnoughToAdmitByThem) {
  std::vector<double> ratios;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    random_.seed(seed);
    const std::vector<SimulatedCollection> collections = {
        {62'423ULL * 384, Uniform(0.3, 3), Uniform(0.03, 0.3)}};
    std::vector<SimulatedTask> tasks;
    for (int i = 0; i < 1'500; ++i) tasks.push_back({.arrives_ms = Uniform(0, 20)});
    Simulation simulation(collections, tasks);
    simulation.MeasureAtLoad();
    simulation.Run();
    for (const SimulatedTask& task : simulation.tasks()) {
      const double took = task.answered_ms - task.arrives_ms;
      if (took > 3 * kSliceMs) ratios.push_back(task.estimated_ms / took);
    }
  }
  ASSERT_GT(ratios.size(), 1'000U);
  std::ranges::sort(ratios);
  EXPECT_GT(ratios[ratios.size() / 20], 0.4);
  EXPECT_LT(ratios[ratios.size() * 19 / 20], 2.5);
}

}  // namespace
}  // namespace simile::engine
