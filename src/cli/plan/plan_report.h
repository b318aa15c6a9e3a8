#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/plan/capacity.h"
#include "cli/plan/pass_times.h"
#include "cli/terminal.h"

namespace simile::cli {

// Everything that `simile plan` prints.
struct PlanReport {
  std::vector<PlannedCollection> collections;

  HostPlan host;
  std::uint64_t pinned_bytes = 0;                     // as for PlanHost
  std::optional<std::uint64_t> host_available_bytes;  // that may be taken; nullopt: not known
  std::string host_available_from;  // "nine tenths of the 22.9 GiB available on the machine"

  std::optional<DevicePlan> device;  // nullopt: no card is known
  std::string no_device_reason;      // then: "no NVIDIA driver on this machine"
  std::string card;                  // "NVIDIA H200"; empty: not named
  std::string known_card;            // the same as FindCardFacts names it; empty: not in the table
  std::string card_origin;           // "gpu.device 0", "--device-memory"
  double memory_fraction = 0;
  std::uint64_t reserve_bytes = 0;
  bool int8_is_assumed = false;      // there are some, on a card that may be too old
  std::vector<std::string> choices;  // when the card does not hold all
  bool full_goes_to_cpu = true;      // gpu.when_full

  std::uint32_t batch_max = 0;  // limits.batch_queries_max
  std::uint32_t k = 0;          // hits of each query that the times are for
  std::uint32_t k_max = 0;      // limits.k_max
  unsigned threads = 0;

  SpeedLimits host_speed;
  std::string host_speed_from;    // "measured", "--host-bandwidth"
  DeviceSpeed device_speed;       // 0 where it is not known
  std::string device_speed_from;  // "data sheet of NVIDIA H200", "--device-bandwidth"
  std::optional<double> price_per_hour;
};

// One figure of the times of a collection.
struct PlanFigure {
  std::string where;  // "cpu", "gpu"
  std::uint32_t batch = 0;
  std::string what;    // "reading", "multiplying", "engine", "one caller", "64 callers"
  double seconds = 0;  // of a batch; 0: many calls at the same time
  double queries_per_s = 0;
  Basis basis = Basis::kFloor;
  std::string from;        // the card that was measured; empty: none
  bool is_served = false;  // with as many callers as it takes: a price follows from it

  // What a million queries cost on a machine of this price for an hour.
  double CostOfMillion(double price_per_hour) const {
    return price_per_hour / 3600 * 1e6 / queries_per_s;
  }
};

// The times of one collection: of one query, and of the largest batch where it is known how fast is
// multiplied; on the host, and on a card that holds it. Of each the floor, the engine's time where
// something of its kind was measured, and what a server makes of it.
std::vector<PlanFigure> MakeFigures(const PlanReport& report, std::size_t collection);

// Whether everything fits as far as is known: the exit code. On the host with its reloads; on the
// card with those that would be refused, because the CPU takes over others (gpu.when_full).
bool Fits(const PlanReport& report);

// Tables of the host and the card, each with whether it fits and what can be done; then limits,
// times and costs. Fits 80 columns for names of up to 12.
std::string PlanText(const PlanReport& report, const Terminal& terminal);

// The same on one line, ended by '\n', in bytes and seconds:
//   {"collections": [{"name", "rows", "dim", "metric", "users", "loaded", "sampled",
//     "host": {"vectors", "payload", "users", "index", "rest", "load_peak", "reload_peak",
//              "reload_peak_held"},
//     "device": {"fp16_rows", "fp32_rows", "int8_rows", "row_numbers", "filters", "rest", "fits",
//     "reload_fits"}, "times": [{"on", "batch", "what", "seconds", "queries_per_s", "is",
//     "scaled_from", "cost_of_million"}]}],
//    "host": {"program", "pinned", "rest", "reload_peak", "reload_peak_held", "available", "fits",
//             "bandwidth", "products_per_s"},
//    "device": {"name", "origin", "memory", "memory_fraction", "reserve", "available", "workspace",
//               "needed", "rest", "reload_peak", "fits", "int8_assumed", "choices", "bandwidth",
//               "products_per_s", "capability", "strategies"},
//    "limits": {"batch", "k"}, "fits"}
// null: "device" without a card, and a number that is not known.
std::string PlanJson(const PlanReport& report);

}  // namespace simile::cli
