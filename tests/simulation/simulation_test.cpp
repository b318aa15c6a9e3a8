// The engine's promises hold in many orders of its threads, and what breaks them is found. A
// failure prints its seed; `simulate --scenario NAME --seed N` runs it again.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "simulation/bugs.h"
#include "simulation/scenarios.h"
#include "simulation/schedules.h"

namespace simile::simulation {

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }
void PrintTo(const BugInfo& bug, std::ostream* out) { *out << bug.part << ": " << bug.what; }

namespace {

// Other schedules each time that TEST_ROTATION is another number.
std::uint64_t FirstSeed() {
  const char* const rotation = std::getenv("TEST_ROTATION");
  return rotation == nullptr ? 1 : std::strtoull(rotation, nullptr, 10);
}

class ScenarioTest : public testing::TestWithParam<Scenario> {};

TEST_P(ScenarioTest, KeepsItsPromisesInEverySchedule) {
  const Scenario& scenario = GetParam();
  const Schedules schedules =
      RunSchedules(scenario, Bug::kNone, FirstSeed(), scenario.schedules_of_test);
  EXPECT_EQ(schedules.failure, "") << "seed " << schedules.failed_seed << "\n" << schedules.trace;
  EXPECT_EQ(schedules.count, scenario.schedules_of_test);
  // Most operations are points; a schedule without any would check nothing.
  EXPECT_GT(schedules.points, 50 * schedules.count);
  std::printf("%" PRIu64 " schedules from seed %" PRIu64 ", %" PRIu64 " points\n", schedules.count,
              FirstSeed(), schedules.points);
}

INSTANTIATE_TEST_SUITE_P(Simulation, ScenarioTest, testing::ValuesIn(Scenarios()),
                         [](const auto& of) { return std::string(of.param.name); });

class PlantedRaceTest : public testing::TestWithParam<BugInfo> {};

TEST_P(PlantedRaceTest, IsFound) {
  constexpr std::uint64_t kSeedsMax = 200'000;
  const BugInfo& bug = GetParam();
  const Scenario& scenario = FindScenario(bug.scenario);
  const Schedules first = RunSchedules(scenario, bug.bug, 1, kSeedsMax);
  ASSERT_NE(first.failure, "") << "not in " << kSeedsMax << " seeds";
  std::printf("found after %" PRIu64 " schedules\n", first.count);
  // The seed alone finds it again, by the same points.
  const Schedules again = RunSchedules(scenario, bug.bug, first.failed_seed, 1);
  EXPECT_EQ(again.failure, first.failure);
  EXPECT_EQ(again.trace, first.trace);
  // And it is the bug that it finds.
  EXPECT_EQ(RunSchedules(scenario, Bug::kNone, first.failed_seed, 1).failure, "");
}

INSTANTIATE_TEST_SUITE_P(Simulation, PlantedRaceTest, testing::ValuesIn(Bugs()),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace simile::simulation
