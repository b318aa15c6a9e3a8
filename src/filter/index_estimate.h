#pragma once

#include <cstddef>
#include <cstdint>

#include "filter/payload_index.h"
#include "filter/text_index.h"

namespace simile::filter {

// The memory of an index before it is built.
struct IndexEstimate {
  std::uint64_t bytes = 0;        // of the finished index
  std::uint64_t build_bytes = 0;  // the most that building it takes besides
};

// The rows that an index was built over, of those that it will be built over. The first half of
// them is a sample, too (data::DatasetSample).
struct SampledRows {
  std::size_t sampled = 0;  // at least 1
  std::size_t total = 0;

  double times() const { return static_cast<double>(total) / static_cast<double>(sampled); }
};

// Extrapolates from an index over a sample. The bytes of one over all rows are its own.
IndexEstimate EstimateTextIndex(const TextIndex& sample, const SampledRows& rows);
// The different keywords of a field are estimated by data::DistinctCount.
// Cost: one pass over the sample's keywords.
IndexEstimate EstimatePayloadIndex(const PayloadIndex& sample, const SampledRows& rows);

}  // namespace simile::filter
