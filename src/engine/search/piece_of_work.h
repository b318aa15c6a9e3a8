#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace simile::engine {

// What a query that one search does not answer needs next.
enum class Step : std::uint8_t {
  kSearch,  // a search, together with those of others
  kWork,    // a piece of work of its own
  kDone,
};

// Long work of a query is done in pieces, between which its deadline is checked and other queries
// run. A piece forms canonical scores: vectors * rows * dim products, 2 to 3 ms of them on two
// cores where rows are gathered one by one (estimated from 80 ns a row of 384 dimensions).
inline constexpr std::size_t kProductsOfPiece = 8U << 20;
// And no more scores than this, which takes 4 MiB.
inline constexpr std::size_t kScoresOfPiece = 1U << 20;

// How many rows to score with so many vectors in one piece. At least one.
inline std::size_t RowsOfPiece(std::size_t dim, std::size_t vector_count) {
  const std::size_t products_of_row = std::max<std::size_t>(1, dim * vector_count);
  return std::max<std::size_t>(
      1, std::min(kProductsOfPiece / products_of_row, kScoresOfPiece / vector_count));
}

}  // namespace simile::engine
