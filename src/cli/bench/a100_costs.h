#pragma once

#include <cstdint>
#include <optional>

namespace simile::cli::bench {

// A month of the guide has 30 days: its prices are 720 hourly ones.
inline constexpr double kHoursOfMonth = 720;
inline constexpr double kSecondsOfMonth = kHoursOfMonth * 3'600;
// The guide asks for the cost of 100 million queries a month.
inline constexpr std::uint64_t kQueriesOfMonth = 100'000'000;

// A machine that is rented by the hour and answers at a measured rate.
struct RentedMachine {
  double hourly_price = 0;
  double queries_per_s = 0;  // above 0
};

// The price of a million queries at this rate.
double CostPerMillion(const RentedMachine& machine);

// Whole machines for some queries a month, spread evenly over it.
struct MonthRent {
  std::uint64_t machines = 0;
  double price = 0;
  double busy = 0;  // share of their time
};
MonthRent RentFor(const RentedMachine& machine, std::uint64_t queries_of_month);

// The number of queries a month from which on machines with a card cost no more than machines
// without one, whatever the number: 0 for always. Nothing where there is none, because a query on a
// full machine costs at least as much with a card.
std::optional<std::uint64_t> CardPaysFrom(const RentedMachine& cpu, const RentedMachine& card);

// The machines whose rents are compared. Unset where a price or a rate is not known.
struct ComparedMachines {
  std::optional<RentedMachine> cpu;
  std::optional<RentedMachine> card;
};

}  // namespace simile::cli::bench
