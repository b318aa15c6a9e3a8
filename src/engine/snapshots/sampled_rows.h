#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include <absl/status/statusor.h>

#include "data/matrix.h"
#include "simile/matrix_view.h"

namespace simile::engine {

// Draws rows to search for, as indexes into the matrix; one may come twice. Avoids rows of zeros
// where others are easily found: they score 0 with all rows, which tells little.
// REQUIRES: rows are not empty.
std::vector<std::size_t> DrawRows(MatrixView rows, std::size_t count, std::mt19937_64& random);

// The chosen rows as a batch of queries. Errors: those of Matrix::Create.
absl::StatusOr<data::Matrix> QueriesOf(MatrixView rows, std::span<const std::size_t> chosen);

}  // namespace simile::engine
