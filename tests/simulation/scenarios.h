#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "simulation/simulator.h"

namespace simile::simulation {

// A program for the simulator: threads that use a part of the engine, and the checks of what it
// promises. Its sizes and choices follow from the schedule's seed.
struct Scenario {
  std::string_view name;
  std::string_view what;
  void (*run)(Simulator& simulator);
  std::uint64_t schedules_of_test = 0;  // about two seconds
};
std::span<const Scenario> Scenarios();
const Scenario& FindScenario(std::string_view name);  // REQUIRES: there is one

void RunCalls(Simulator& simulator);   // calls_scenario.cpp
void RunShares(Simulator& simulator);  // shares_scenario.cpp
void RunSwaps(Simulator& simulator);   // swaps_scenario.cpp
void RunLoads(Simulator& simulator);   // loads_scenario.cpp

}  // namespace simile::simulation
