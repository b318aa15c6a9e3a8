#pragma once

#include <memory>
#include <span>

#include "backend/gpu_options.h"
#include "backend/segments.h"

namespace simile::tests {

// A search whose gate the order of the rows deceives.
struct TooHighGate {
  unsigned row_count = 0;
  unsigned wanted = 0;      // hits of the one query
  unsigned near_count = 0;  // rows that score near_below less than the best; the gate may be above
  float near_below = 0;
};

// The rows, of kTooHighGateDim dimensions, for the first unit vector as the query, CardOf(0) and a
// GPU with these options. Its sample holds as many of the best rows as the rank of its gate, one in
// each group; near rows are one in each of the next groups; all others score far lower.
inline constexpr unsigned kTooHighGateDim = 32;
std::shared_ptr<PaddedRows> MakeRows(const TooHighGate& gate, const backend::GpuOptions& options);

// Makes a row with this score for the first unit vector.
void SetScore(std::span<float> row, float score, SeededRandom& random);

}  // namespace simile::tests
