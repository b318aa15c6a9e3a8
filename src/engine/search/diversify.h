#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "engine/search/execution.h"
#include "engine/search/segment_search.h"
#include "engine/snapshots/snapshot.h"

namespace simile::engine {

// Chooses k of the candidates by Diversity's rule.
//   candidates  best first
//   execution   what comparing costs is added to it: each comparison counts as a row rescored
// Returns them in the order chosen; all of them when there are no more than k.
// Errors: the backend's. Throws std::bad_alloc. Cost: k * candidates canonical scores.
absl::StatusOr<std::vector<Hit>> Diversify(std::span<const Hit> candidates, std::size_t k,
                                           float lambda, const Snapshot& snapshot,
                                           SegmentSearch& search, Execution& execution);

}  // namespace simile::engine
