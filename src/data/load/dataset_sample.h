#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "data/load/plan.h"
#include "data/payload/payload_table.h"
#include "simile/limits.h"

namespace simile::data {

// The most that is read of metadata.jsonl, of interactions.jsonl and of user_ids.json to estimate
// their memory; a file up to this size is read whole.
inline constexpr std::uint64_t kSampleBytesMax = std::uint64_t{4} << 20;

// Some rows of a collection's payload, and the memory of the Dataset's parts whose size the headers
// and file sizes do not tell. The memory is counted where files were read whole, else extrapolated.
struct DatasetSample {
  // The rows that were read, as a load would keep them: all rows, or the lines of blocks spread
  // evenly over the file. Every other block comes first, so that the first half is a sample too.
  PayloadTable payload;
  std::vector<std::string> lookup_fields;  // as Dataset's
  bool is_whole = true;                    // all rows were read
  bool is_readable = true;          // false: a line of the sample is invalid; a load would say why
  std::uint64_t payload_bytes = 0;  // Dataset::payload and ids
  std::uint64_t user_bytes = 0;     // Dataset::profiles
};

// Reads at most kSampleBytesMax of each file. Cost: about 0.1 s for a large payload.
// Errors: those of PlanDataset about files that cannot be opened or read. Invalid content is no
// error.
absl::StatusOr<DatasetSample> SampleDataset(const DatasetPlan& plan, const Limits& limits);

// How often values occur in a sample.
struct DistinctSample {
  std::uint64_t values = 0;            // all of them
  std::uint64_t distinct = 0;          // different ones
  std::uint64_t once = 0;              // different ones that occur once
  std::uint64_t twice = 0;             // ... twice
  std::uint64_t distinct_in_half = 0;  // different ones in the first half of the sample
};

// Estimates the number of different values among `times` (at least 1) as many values as in the
// sample. Returns the geometric mean of two estimates, because real fields lie between their
// models. Chao's (A. Chao and L. Jost, Ecology 93, 2012) takes values that the sample lacks to be
// as rare as values that it has once: a lower bound. Heaps' law lets each doubling add the same
// share: too many once a vocabulary is exhausted. Both agree where all values are different, or all
// are known.
double DistinctCount(const DistinctSample& sample, double times);

}  // namespace simile::data
