#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/status/statusor.h>

#include "data/matrix.h"

namespace simile::bench {

// Unit vectors in random directions (never zeros, which overstate a scan), the same for the same
// seed.
absl::StatusOr<data::Matrix> RandomUnitRows(std::size_t row_count, std::size_t dim,
                                            std::uint64_t seed);

}  // namespace simile::bench
