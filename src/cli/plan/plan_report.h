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
  std::optional<std::uint64_t> host_available_bytes;  // bytes that may be taken; nullopt: unknown
  std::string host_available_from;  // "nine tenths of the 22.9 GiB available on the machine"

  std::optional<DevicePlan> device;  // nullopt: no card to plan for
  std::string no_device_reason;      // without a card: "no NVIDIA driver on this machine"
  std::string card;                  // "NVIDIA H200"; empty: unnamed
  std::string known_card;            // the card's name from FindCardFacts; empty: not in the table
  std::string card_origin;           // "gpu.device 0", "--device-memory"
  double memory_fraction = 0;
  std::uint64_t reserve_bytes = 0;
  bool int8_is_assumed = false;  // int8 rows are planned for a card that may be too old for them
  std::vector<std::string> choices;  // ways to serve, if the card does not hold everything
  bool full_goes_to_cpu = true;      // gpu.when_full

  std::uint32_t batch_max = 0;  // limits.batch_queries_max
  std::uint32_t k = 0;          // hits per query in the times
  std::uint32_t k_max = 0;      // limits.k_max
  unsigned threads = 0;

  SpeedLimits host_speed;
  std::string host_speed_from;    // "measured", "--host-bandwidth"
  DeviceSpeed device_speed;       // 0: unknown
  std::string device_speed_from;  // "data sheet of NVIDIA H200", "--device-bandwidth"
  std::optional<double> price_per_hour;
};

// One time of a collection.
struct PlanFigure {
  std::string where;  // "cpu", "gpu"
  std::uint32_t batch = 0;
  std::string what;    // "reading", "multiplying", "engine", "one caller", "64 callers"
  double seconds = 0;  // of a batch; 0 for many concurrent calls
  double queries_per_s = 0;
  Basis basis = Basis::kFloor;
  std::string from;        // the card that was measured; empty: none
  bool is_served = false;  // served to as many callers as needed, so a price can be computed

  // The cost of a million queries on a machine with this price per hour.
  double CostOfMillion(double price_per_hour) const {
    return price_per_hour / 3600 * 1e6 / queries_per_s;
  }
};

// The times of one collection, on the host and on a card that holds it. Covers one query, and the
// largest batch if the rate of multiplying is known. Each has its floor, the engine's time if such
// a pass was measured, and the times of a server.
std::vector<PlanFigure> MakeFigures(const PlanReport& report, std::size_t collection);

// Whether everything fits, as far as is known; decides the exit code. Reloads must fit on the host.
// On a card they must fit only if gpu.when_full refuses them; otherwise the CPU takes over.
bool Fits(const PlanReport& report);

// Tables of the host and the card; each says whether the collections fit and what can be done. Then
// limits, times and costs. Fits in 80 columns if names have at most 12.
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
// "device" is null without a card; an unknown number is null.
std::string PlanJson(const PlanReport& report);

}  // namespace simile::cli
