#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/tuning/collection_probe.h"
#include "backend/gpu_choices.h"
#include "backend/registry.h"
#include "simile/clock.h"

namespace simile::app {

// The time of a batch on the GPU, from host memory to host memory.
struct GpuRate {
  std::uint32_t queries = 0;
  double seconds = 0;  // the median of its runs
  std::string engine;  // that answered, as receipts name it
};

// A collection on the GPU.
struct GpuCollectionRates {
  std::string name;
  std::string why_not;         // why nothing was measured; empty where it was
  std::vector<GpuRate> rates;  // of 1, 2, 4, ... queries
  // The fewest queries that reach the sufficient share of the best rate; 0 where only the largest
  // batch does.
  std::uint32_t sufficient_batch = 0;
  // What its load measured; empty where the GPU answers it by canonical scores alone.
  std::optional<backend::MeasuredChoices> measured;
};

struct GpuRates {
  std::string device;   // "NVIDIA H200"; empty where no GPU serves
  std::string why_not;  // why no GPU serves; empty where one does
  std::vector<GpuCollectionRates> collections;
};

struct GpuRatesTask {
  backend::RegistryOptions backend;  // as serve would open it
  std::uint32_t k = 10;
  std::uint32_t batch_max = 1'024;  // queries at once
  Clock::Duration duration{};       // of all measurements beside the loads
  // Earlier measurements; read, never written. Null for none.
  backend::GpuChoiceStore* known = nullptr;
};

// Called with the share of the time that is over and the current step; may be empty.
using TuneProgress = std::function<void(double share, const std::string& what)>;

// Loads the collections on the GPU that serve would use, each by itself, lets the card measure its
// passes, and times batches of 1 query to batch_max. Failures are reported in why_not.
GpuRates MeasureGpu(const GpuRatesTask& task, std::span<const TunedCollection> collections,
                    const Clock& clock, const TuneProgress& progress);

}  // namespace simile::app
