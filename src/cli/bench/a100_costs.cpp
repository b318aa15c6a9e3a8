#include "cli/bench/a100_costs.h"

#include <algorithm>
#include <cmath>

namespace simile::cli::bench {
namespace {

// Machines without a card that are looked at. Where a card pays only with more of them, a query
// costs the same on both within millionths.
constexpr double kMachinesMax = 1e6;

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

// The rent without a card stays the same until the machines are full, and the rent with cards can
// only rise meanwhile: so full machines are the place to look. With cards the last machine may be
// idle, so their rent is at most that of their queries and one machine more.
std::optional<std::uint64_t> CardPaysFrom(const RentedMachine& cpu, const RentedMachine& card) {
  const double saved = CostPerMillion(cpu) - CostPerMillion(card);
  const double sure = card.hourly_price * kHoursOfMonth / saved * 1e6;  // queries a month
  const double machines = std::ceil(sure / CapacityOf(cpu));
  if (!(saved > 0) || machines > kMachinesMax) return std::nullopt;
  for (double full = machines; full > 0; --full) {
    const auto queries = static_cast<std::uint64_t>(full * CapacityOf(cpu));
    if (RentFor(card, queries).price > full * cpu.hourly_price * kHoursOfMonth) return queries + 1;
  }
  return 0;
}

}  // namespace simile::cli::bench
