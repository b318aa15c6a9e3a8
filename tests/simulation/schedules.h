#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "simulation/bugs.h"
#include "simulation/scenarios.h"

namespace simile::simulation {

// What the schedules of some seeds came to.
struct Schedules {
  std::uint64_t count = 0;   // the one that failed included
  std::uint64_t points = 0;  // at which another thread could have run, in all of them
  std::string failure;       // of the last; empty when none failed
  std::uint64_t failed_seed = 0;
  std::string trace;  // its last points
};

// Runs a scenario in the schedules of successive seeds, until one fails.
//   bug        planted meanwhile
//   count_max  schedules
//   is_over    asked between two schedules; may be empty
Schedules RunSchedules(const Scenario& scenario, Bug bug, std::uint64_t first_seed,
                       std::uint64_t count_max, const std::function<bool()>& is_over = {});

}  // namespace simile::simulation
