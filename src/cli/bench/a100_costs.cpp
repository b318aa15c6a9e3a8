#include "cli/bench/a100_costs.h"

#include <algorithm>
#include <cmath>

namespace simile::cli::bench {
namespace {

// Machines without a card that are looked at: with more of them the difference is one of
// millionths.
constexpr std::uint64_t kMachinesMax = 1'000'000;

double CapacityOf(const RentedMachine& machine) { return machine.queries_per_s * kSecondsOfMonth; }

}  // namespace

double CostPerMillion(const RentedMachine& machine) {
  return machine.hourly_price / 3'600 / machine.queries_per_s * 1e6;
}

MonthRent RentFor(const RentedMachine& machine, std::uint64_t queries_of_month) {
  const double needed = static_cast<double>(queries_of_month) / CapacityOf(machine);
  MonthRent rent;
  rent.machines = static_cast<std::uint64_t>(std::max(1.0, std::ceil(needed)));
  rent.price = static_cast<double>(rent.machines) * machine.hourly_price * kHoursOfMonth;
  rent.busy = needed / static_cast<double>(rent.machines);
  return rent;
}

// The rent without a card rises by a step whenever a machine is full, and between two steps the
// rent with cards can only rise: so each step is the place to look.
std::optional<std::uint64_t> CardPaysFrom(const RentedMachine& cpu, const RentedMachine& card) {
  if (CostPerMillion(card) > CostPerMillion(cpu)) return std::nullopt;
  for (std::uint64_t full = 0; full < kMachinesMax; ++full) {
    const double queries = std::floor(static_cast<double>(full) * CapacityOf(cpu));
    const std::uint64_t from = full == 0 ? 0 : static_cast<std::uint64_t>(queries) + 1;
    const double without = static_cast<double>(full + 1) * cpu.hourly_price * kHoursOfMonth;
    if (RentFor(card, from).price <= without) return from;
  }
  return std::nullopt;
}

}  // namespace simile::cli::bench
