#pragma once

#include <cstddef>
#include <span>

#include "simile/query.h"

namespace simile::backend::cpu {

// Less than this many multiply-adds are done before another thread is awake.
inline constexpr std::size_t kSmallWork = 1U << 18;

// How a search is cut into pieces. A piece is one block of rows against one group of queries; the
// pieces of one block follow each other, so that the block is read from memory once and is in cache
// for its other groups.
struct ScanPlan {
  std::size_t block_rows = 0;
  std::size_t block_count = 0;
  std::size_t group_queries = 0;
  std::size_t group_count = 0;
  unsigned threads = 1;  // worth waking for this much work

  std::size_t piece_count() const { return block_count * group_count; }
};

// Cuts row_count rows and query_count queries of padded_dim floats for up to `threads` threads.
// Pure. REQUIRES: everything >= 1.
ScanPlan PlanScan(std::size_t row_count, std::size_t query_count, std::size_t padded_dim,
                  unsigned threads);

// How many of the first queries of `specs` can be answered in one pass over the rows with the
// memory that collecting their hits may take: at least one, else the rest needs another pass. Pure.
std::size_t QueriesOfOnePass(std::span<const QuerySpec> specs, std::size_t row_count,
                             unsigned threads);

}  // namespace simile::backend::cpu
