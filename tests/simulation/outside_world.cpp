#include "simulation/outside_world.h"

#include <charconv>
#include <chrono>
#include <string>

#include "base/error_detail.h"
#include "engine/snapshots/memory_plan.h"
#include "simulation/sample_contents.h"

namespace simile::simulation {
namespace {

std::uint64_t generations_alive = 0;

}  // namespace

void Pass(std::string_view operation) {
  if (Simulator* const simulator = Simulator::current()) simulator->Point(operation, "");
}

void CountedGeneration::Count() {
  counted_ = true;
  ++generations_alive;
}

CountedGeneration::~CountedGeneration() {
  if (counted_) --generations_alive;
}

std::uint64_t CountedGeneration::alive() { return generations_alive; }

void CountedGeneration::Forget() { generations_alive = 0; }

absl::StatusOr<data::DatasetPlan> PlanDataset(const std::filesystem::path& folder,
                                              const Limits& /*limits*/,
                                              const std::filesystem::path& /*links_within*/) {
  Pass("plans a folder");
  data::DatasetPlan plan;
  plan.files.folder = folder;
  const data::Matrix& vectors = DatasetOf(0)->vectors;
  plan.row_count = vectors.row_count();
  plan.dim = static_cast<std::uint32_t>(vectors.dim());
  plan.vector_bytes = vectors.bytes();
  return plan;
}

engine::DataBytes PlanData(const data::DatasetPlan& plan) {
  Pass("reads a sample");
  return {.vectors = plan.vector_bytes};
}

absl::StatusOr<CountedDataset> LoadDataset(const data::DatasetPlan& plan, const Limits& /*limits*/,
                                           const data::ProgressFn& progress) {
  Simulator& simulator = *Simulator::current();
  const std::string folder = plan.files.folder.string();
  CountedDataset dataset;
  dataset.generation.Count();
  simulator.Pause(6);
  progress({.file = folder, .bytes_read = 1, .bytes_total = 2});
  if (folder.starts_with("bad")) {
    return base::Error(base::ErrorReason::kInvalidFiles, "vectors.npy: row 1 holds NaN");
  }
  simulator.Pause(6);
  std::size_t content = 0;
  std::from_chars(folder.data(), folder.data() + folder.size(), content);
  static_cast<data::Dataset&>(dataset) = CopyOfDataset(content);
  return dataset;
}

}  // namespace simile::simulation
