#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include <absl/status/statusor.h>

#include "data/load/dataset.h"
#include "data/load/load.h"
#include "data/load/plan.h"
#include "simile/limits.h"
#include "simulation/bugs.h"
#include "simulation/primitives.h"

namespace simile::engine {
struct DataBytes;
}  // namespace simile::engine

// What the copied sources call in place of files and of the system (simulated_sources.py).
namespace simile::simulation {

// A point at which another simulated thread may run.
void Pass(std::string_view operation);

// What one generation takes, from its load until its dataset is destroyed; the plan says the same.
inline constexpr std::uint64_t kGenerationBytes = std::uint64_t{1} << 20;

// Counts a generation in memory while it lives.
class CountedGeneration {
 public:
  CountedGeneration() = default;
  ~CountedGeneration();
  CountedGeneration(CountedGeneration&& other) noexcept
      : counted_(std::exchange(other.counted_, false)) {}
  CountedGeneration& operator=(CountedGeneration&&) = delete;

  void Count();
  static std::uint64_t alive();  // now
  static void Forget();          // those of a schedule that failed, which are never destroyed

 private:
  bool counted_ = false;
};

struct CountedDataset : data::Dataset {
  CountedGeneration generation;
};

// A folder is the number of a content (sample_contents.h), as text; one that begins with "bad" is
// planned and then cannot be read.
absl::StatusOr<data::DatasetPlan> PlanDataset(const std::filesystem::path& folder,
                                              const Limits& limits,
                                              const std::filesystem::path& links_within);
engine::DataBytes PlanData(const data::DatasetPlan& plan);
absl::StatusOr<CountedDataset> LoadDataset(const data::DatasetPlan& plan, const Limits& limits,
                                           const data::ProgressFn& progress);

}  // namespace simile::simulation
