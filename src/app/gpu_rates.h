#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "app/better_tuning.h"
#include "app/collection_probe.h"
#include "backend/gpu_choices.h"
#include "backend/registry.h"
#include "simile/clock.h"

namespace simile::app {

// A batch on the GPU, host to host.
struct GpuRate {
  std::uint32_t queries = 0;
  double seconds = 0;  // the median of its runs
  std::string engine;  // that answered, as receipts name it
};

// What a load of a collection measured, and what it holds for.
struct MeasuredChoices {
  backend::GpuSegmentKey key;
  backend::GpuChoices choices;
};

// A collection on the GPU.
struct GpuCollectionRates {
  std::string name;
  std::string why_not;                // why nothing was measured; empty where it was
  std::vector<GpuRate> rates;         // of 1, 2, 4, ... queries
  std::uint32_t queries_of_pass = 0;  // the fewest that reach 95 % of the best rate
  // What its load measured; empty where the GPU answers it by canonical scores alone.
  std::optional<MeasuredChoices> measured;
};

struct GpuRates {
  std::string device;   // "NVIDIA H200"; empty where no GPU serves
  std::string why_not;  // then why
  std::vector<GpuCollectionRates> collections;
};

struct GpuRatesTask {
  backend::RegistryOptions backend;  // as serve would open it
  std::uint32_t k = 10;
  std::uint32_t batch_max = 1'024;  // queries at once
  Clock::Duration duration{};       // of all measurements beside the loads
  // What is known; read, never written.
  backend::GpuChoiceStore* known = nullptr;
};

// Loads the collections on the GPU that serve would use, each by itself, lets the card measure its
// passes, and times batches of 1 query to batch_max. Where no GPU serves, that is the result.
//   progress  as TuneCollections'
// Errors: those of ChooseBackend; the backend's own.
absl::StatusOr<GpuRates> MeasureGpu(const GpuRatesTask& task,
                                    std::span<const TunedCollection> collections,
                                    const Clock& clock, const TuneProgress& progress);

}  // namespace simile::app
