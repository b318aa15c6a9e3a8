#pragma once

#include <functional>

#include <absl/status/statusor.h>

#include "data/dataset.h"
#include "data/plan.h"
#include "simile/limits.h"

namespace simile::data {

// Called repeatedly during a load with the fraction done, 0..1, from the loading thread.
using ProgressFn = std::function<void(double fraction)>;

// Reads and checks everything. Files are read once, in order, through a small buffer, so the peak
// is the dataset plus a few MiB.
// Errors: as PlanDataset; kResourceExhausted without memory; kAborted when a file has changed shape
//         since the plan. Every message begins with the file's display name and says row or line,
//         column or field, and what would be right.
absl::StatusOr<Dataset> LoadDataset(const DatasetPlan& plan, const Limits& limits,
                                    const ProgressFn& progress);

}  // namespace simile::data
