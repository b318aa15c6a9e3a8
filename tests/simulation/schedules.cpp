#include "simulation/schedules.h"

#include <optional>

#include "simulation/ignored_leaks.h"
#include "simulation/outside_world.h"
#include "simulation/sample_contents.h"

namespace simile::simulation {
namespace {

constexpr std::size_t kTraceLines = 400;

}  // namespace

Schedules RunSchedules(const Scenario& scenario, Bug bug, std::uint64_t first_seed,
                       std::uint64_t count_max, const std::function<bool()>& is_over) {
  PrepareAnswers();
  std::optional<IgnoredLeaks> ignored;
  if (bug != Bug::kNone) ignored.emplace();
  planted_bug = bug;
  Simulator simulator;
  Schedules result;
  while (result.count < count_max && (!is_over || !is_over())) {
    const std::uint64_t seed = first_seed + result.count++;
    result.failure = simulator.Run(seed, [&] { scenario.run(simulator); });
    result.points += simulator.points();
    if (result.failure.empty()) continue;
    result.failed_seed = seed;
    result.trace = simulator.Trace(kTraceLines);
    CountedGeneration::Forget();
    break;
  }
  planted_bug = Bug::kNone;
  return result;
}

}  // namespace simile::simulation
