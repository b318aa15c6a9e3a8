#include "bench/bench_rows.h"

#include <cmath>

#include "certificate/seeded_random.h"

namespace simile::bench {

absl::StatusOr<data::Matrix> RandomUnitRows(std::size_t row_count, std::size_t dim,
                                            std::uint64_t seed) {
  absl::StatusOr<data::Matrix> matrix = data::Matrix::Create(row_count, dim);
  if (!matrix.ok()) return matrix;
  tests::SeededRandom random(seed);
  for (std::size_t r = 0; r < row_count; ++r) {
    float* row = matrix->MutableRow(r);
    double squares = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      row[i] = random.Signed();
      squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
    }
    const double inverse = 1 / std::sqrt(squares);
    for (std::size_t i = 0; i < dim; ++i) {
      row[i] = static_cast<float>(static_cast<double>(row[i]) * inverse);
    }
  }
  return matrix;
}

}  // namespace simile::bench
