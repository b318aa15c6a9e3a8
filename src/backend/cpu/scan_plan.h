#pragma once

#include <cstddef>
#include <span>

#include "simile/query.h"

namespace simile::backend::cpu {

// Fewer multiply-adds than this are left to the calling thread. Waking another and waiting for it
// pays from about 90 us on, and costs the processors as much again (docs/design/cpu-engine.md).
inline constexpr std::size_t kSmallWork = 1U << 20;

// How a search is divided into pieces. A piece is one block of rows against one group of queries.
// The pieces of one block follow each other, so that the block is read from memory once and is in
// cache for its other groups.
struct ScanPlan {
  std::size_t block_rows = 0;
  std::size_t block_count = 0;
  std::size_t group_queries = 0;
  std::size_t group_count = 0;
  unsigned threads = 1;  // as many as this much work pays for

  std::size_t piece_count() const { return block_count * group_count; }
};

// Divides row_count rows and query_count queries of padded_dim floats for up to `threads` threads.
// Pure. REQUIRES: everything >= 1.
ScanPlan PlanScan(std::size_t row_count, std::size_t query_count, std::size_t padded_dim,
                  unsigned threads);

// How many queries of `specs`, from the first on, one pass can answer within the memory limit for
// their hits: at least one. The rest needs another pass. Pure.
std::size_t QueriesOfOnePass(std::span<const QuerySpec> specs, std::size_t row_count,
                             unsigned threads);

}  // namespace simile::backend::cpu
