#include "engine/snapshots/sampled_rows.h"

#include <algorithm>

#include "simile/zero_vector.h"

namespace simile::engine {
namespace {

constexpr int kDrawsMax = 16;  // of one row

}  // namespace

std::vector<std::size_t> DrawRows(MatrixView rows, std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> drawn(count);
  std::uniform_int_distribution<std::size_t> any_row(0, rows.row_count() - 1);
  for (std::size_t& row : drawn) {
    for (int draws = 0; draws < kDrawsMax; ++draws) {
      row = any_row(random);
      if (!IsZeroVector(rows[row])) break;
    }
  }
  return drawn;
}

absl::StatusOr<data::Matrix> QueriesOf(MatrixView rows, std::span<const std::size_t> chosen) {
  absl::StatusOr<data::Matrix> queries = data::Matrix::Create(chosen.size(), rows.dim());
  if (!queries.ok()) return queries;
  for (std::size_t query = 0; query < chosen.size(); ++query) {
    std::copy_n(rows.PaddedRow(chosen[query]), rows.padded_dim(), queries->MutableRow(query));
  }
  return queries;
}

}  // namespace simile::engine
