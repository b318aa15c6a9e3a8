// Runs the scenarios for a while and then looks for each planted bug; or runs one schedule.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "simulation/bugs.h"
#include "simulation/scenarios.h"
#include "simulation/schedules.h"

namespace simile::simulation {
namespace {

using Seconds = std::chrono::duration<double>;

struct Flags {
  double seconds = 60;
  std::uint64_t seed = 1;
  std::string scenario;
  Bug bug = Bug::kNone;
};

constexpr std::string_view kUsage =
    "simulate [--seconds N] [--seed N]   every scenario for its part of the time, then every bug\n"
    "simulate --scenario NAME --seed N [--bug NAME]   one schedule; its trace when it fails\n";

constexpr std::uint64_t kHuntMax = 200'000;
constexpr std::size_t kHunts = 9;
constexpr std::uint64_t kSeedsApart = 1'000'000;

void PrintFailure(const Scenario& scenario, const Schedules& schedules) {
  fmt::print("{}seed {} of {}: {}\n", schedules.trace, schedules.failed_seed, scenario.name,
             schedules.failure);
}

bool RunOne(const Flags& flags) {
  const Scenario& scenario = FindScenario(flags.scenario);
  const Schedules schedules = RunSchedules(scenario, flags.bug, flags.seed, 1);
  if (!schedules.failure.empty()) {
    PrintFailure(scenario, schedules);
    return false;
  }
  fmt::print("seed {} of {}: passed, {} points\n", flags.seed, scenario.name, schedules.points);
  return true;
}

bool RunScenarios(const Flags& flags) {
  bool passed_all = true;
  fmt::print("{:<10} {:>12} {:>14} {:>14}\n", "scenario", "schedules", "schedules/s", "points/s");
  for (const Scenario& scenario : Scenarios()) {
    const auto began = std::chrono::steady_clock::now();
    const Seconds part(flags.seconds / static_cast<double>(Scenarios().size()));
    const auto passed = [&] { return Seconds(std::chrono::steady_clock::now() - began); };
    const Schedules schedules = RunSchedules(scenario, Bug::kNone, flags.seed, UINT64_MAX,
                                             [&] { return passed() >= part; });
    const double seconds = passed().count();
    fmt::print("{:<10} {:>12} {:>14.0f} {:>14.0f}\n", scenario.name, schedules.count,
               static_cast<double>(schedules.count) / seconds,
               static_cast<double>(schedules.points) / seconds);
    std::fflush(stdout);
    if (schedules.failure.empty()) continue;
    PrintFailure(scenario, schedules);
    passed_all = false;
  }
  return passed_all;
}

// Looks for each bug from several seeds on.
bool HuntBugs(const Flags& flags) {
  bool found_all = true;
  fmt::print("\n{:<15} {:<24} {:<9} {:>12} {:>9}  {}\n", "part", "bug", "scenario", "seeds, median",
             "most", "seen as");
  for (const BugInfo& bug : Bugs()) {
    std::array<std::uint64_t, kHunts> seeds{};
    std::string failure;
    for (std::size_t hunt = 0; hunt < kHunts; ++hunt) {
      const Schedules schedules = RunSchedules(FindScenario(bug.scenario), bug.bug,
                                               flags.seed + hunt * kSeedsApart, kHuntMax);
      seeds[hunt] = schedules.failure.empty() ? UINT64_MAX : schedules.count;
      if (hunt == 0) failure = schedules.failure.substr(0, schedules.failure.find('\n'));
    }
    std::ranges::sort(seeds);
    const bool found = seeds.back() != UINT64_MAX;
    found_all = found_all && found;
    fmt::print("{:<15} {:<24} {:<9} {:>13} {:>9}  {}\n", bug.part, bug.name, bug.scenario,
               seeds[kHunts / 2], found ? fmt::format("{}", seeds.back()) : "missed", failure);
    std::fflush(stdout);
  }
  return found_all;
}

// False for a flag or a value that is not one.
bool Read(std::string_view flag, const std::string& value, Flags& flags) {
  char* end = nullptr;
  if (flag == "--seconds") {
    flags.seconds = std::strtod(value.c_str(), &end);
    return !value.empty() && *end == '\0' && flags.seconds > 0;
  }
  if (flag == "--seed") {
    flags.seed = std::strtoull(value.c_str(), &end, 10);
    return !value.empty() && *end == '\0';
  }
  if (flag == "--scenario") {
    flags.scenario = value;
    return std::ranges::count(Scenarios(), value, &Scenario::name) == 1;
  }
  if (flag == "--bug") {
    const auto found = std::ranges::find(Bugs(), value, &BugInfo::name);
    if (found != Bugs().end()) flags.bug = found->bug;
    return found != Bugs().end();
  }
  return false;
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && Read(argv[i], argv[i + 1], flags)) continue;
    fmt::print(stderr, "{}: wrong at this place\n{}", argv[i], kUsage);
    return 2;
  }
  if (!flags.scenario.empty()) return RunOne(flags) ? 0 : 1;
  const bool passed = RunScenarios(flags);
  const bool found = HuntBugs(flags);
  return passed && found ? 0 : 1;
}

}  // namespace
}  // namespace simile::simulation

int main(int argc, char** argv) { return simile::simulation::Main(argc, argv); }
