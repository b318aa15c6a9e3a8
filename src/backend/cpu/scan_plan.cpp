#include "backend/cpu/scan_plan.h"

#include <algorithm>

#include "certificate/top_k.h"

namespace simile::backend::cpu {
namespace {

// Both, and the scores, must fit the second-level cache together (estimated).
constexpr std::size_t kBlockBytes = 128U << 10;
constexpr std::size_t kGroupBytes = 192U << 10;
constexpr std::size_t kBlockRowsMax = 256;
constexpr std::size_t kGroupQueriesMax = 128;
constexpr std::size_t kBlockRowsMin = 16;  // below, collecting costs more than scoring (estimated)

// The kernels' register tile: blocks are multiples of its rows, groups of its queries where there
// are enough, because a partial tile costs as much as a whole one.
constexpr std::size_t kRowsMultiple = 4;
constexpr std::size_t kQueriesMultiple = 3;

// Enough pieces for each thread that all finish at about the same time.
constexpr std::size_t kPiecesPerThread = 4;

// Buffers of hits, all threads and queries of a pass together.
constexpr std::size_t kCollectorBytesMax = 256U << 20;

std::size_t CeilDiv(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
std::size_t RoundUp(std::size_t value, std::size_t multiple) {
  return CeilDiv(value, multiple) * multiple;
}

}  // namespace

ScanPlan PlanScan(std::size_t row_count, std::size_t query_count, std::size_t padded_dim,
                  unsigned threads) {
  ScanPlan plan;
  plan.threads = row_count * query_count * padded_dim < kSmallWork ? 1 : threads;
  const std::size_t row_bytes = padded_dim * sizeof(float);

  const std::size_t rows_in_cache = std::min(kBlockBytes / row_bytes, kBlockRowsMax);
  const std::size_t rows_to_share = CeilDiv(row_count, plan.threads * kPiecesPerThread);
  plan.block_rows =
      RoundUp(std::max(std::min(rows_in_cache, rows_to_share), kBlockRowsMin), kRowsMultiple);
  plan.block_count = CeilDiv(row_count, plan.block_rows);

  const std::size_t group_max =
      std::clamp(kGroupBytes / row_bytes, kQueriesMultiple, kGroupQueriesMax);
  const std::size_t groups_to_share = CeilDiv(plan.threads * kPiecesPerThread, plan.block_count);
  const std::size_t groups =
      std::min(std::max(CeilDiv(query_count, group_max), groups_to_share), query_count);
  plan.group_queries =
      std::min(RoundUp(CeilDiv(query_count, groups), kQueriesMultiple), query_count);
  plan.group_count = CeilDiv(query_count, plan.group_queries);
  return plan;
}

std::size_t QueriesOfOnePass(std::span<const QuerySpec> specs, std::size_t row_count,
                             unsigned threads) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const QuerySpec& spec : specs) {
    bytes += certificate::TopK::CapacityFor(spec.k, row_count) * sizeof(RankKey) * threads;
    if (bytes > kCollectorBytesMax && count > 0) break;
    ++count;
  }
  return count;
}

}  // namespace simile::backend::cpu
