#include "simulation/scenarios.h"

#include <algorithm>

namespace simile::simulation {
namespace {

constexpr Scenario kScenarios[] = {
    {"calls", "the executor: callers, cancellations, deadlines, swaps, a stop", &RunCalls, 20'000},
    {"shares", "the executor under more work than it can do, in every lane", &RunShares, 1'000},
    {"swaps", "the snapshot store: readers, pages, changes", &RunSwaps, 80'000},
    {"loads", "the publisher and the queue of changes, short of memory", &RunLoads, 20'000},
};

}  // namespace

std::span<const Scenario> Scenarios() { return kScenarios; }

const Scenario& FindScenario(std::string_view name) {
  return *std::ranges::find(kScenarios, name, &Scenario::name);
}

}  // namespace simile::simulation
