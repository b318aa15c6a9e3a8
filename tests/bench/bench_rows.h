#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "data/matrix.h"

namespace simile::bench {

// Unit vectors in random directions, a function of the seed (zeros would overstate a scan's speed).
absl::StatusOr<data::Matrix> RandomUnitRows(std::size_t row_count, std::size_t dim,
                                            std::uint64_t seed);

}  // namespace simile::bench
