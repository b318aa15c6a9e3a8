#include "backend/cpu/scan_pass.h"

#include <algorithm>

#include "base/memory_pages.h"
#include "certificate/top_k.h"

namespace simile::backend::cpu {
namespace {

// A block and a group of queries, with their scores, must fit into the second-level cache together
// (estimated).
constexpr std::size_t kBlockBytes = 128U << 10;
constexpr std::size_t kGroupBytes = 192U << 10;
constexpr std::size_t kBlockRowsMax = 256;
constexpr std::size_t kGroupQueriesMax = 128;
constexpr std::size_t kBlockRowsMin =
    16;  // with fewer rows collecting costs more than scoring (estimated)

// The kernels' register tile. Blocks have a multiple of its rows, and groups a multiple of its
// queries if there are enough, because a partial tile costs as much as a whole one.
constexpr std::size_t kRowsMultiple = 4;
constexpr std::size_t kQueriesMultiple = 3;

// Enough pieces for each thread that all finish at about the same time.
constexpr std::size_t kPiecesPerThread = 4;

// The most bytes of the buffers of hits in a pass, over all threads and queries.
constexpr std::size_t kCollectorBytesMax = 256U << 20;

std::size_t CeilDiv(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
std::size_t RoundUp(std::size_t value, std::size_t multiple) {
  return CeilDiv(value, multiple) * multiple;
}

// A thread claims pieces of at most this many floats to read and multiply-adds to form: a few
// milliseconds. After each claim it asks whether the turn is over.
constexpr std::size_t kProductsAtOnce = std::size_t{8} << 20;

// Whether the query may return any of the rows [first, first + count).
bool AllowsAny(const RowMask& mask, Row first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (mask.Allows(first + static_cast<Row>(i))) return true;
  }
  return false;
}

// The part of ascending `rows` that lies in [first, first + count).
std::span<const Row> Within(std::span<const Row> rows, Row first, std::size_t count) {
  const auto begin = std::lower_bound(rows.begin(), rows.end(), first);
  const auto end = std::lower_bound(begin, rows.end(), first + static_cast<Row>(count));
  return {begin, end};
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

ScanPass::ScanPass(const certificate::CanonicalKernel& kernel, const SegmentRows& rows,
                   const SearchBatch& batch, std::size_t first_query, std::size_t query_count,
                   std::vector<ScanScratch>& scratch, SearchResult& result)
    : kernel_(kernel),
      rows_(rows),
      batch_(batch),
      first_query_(first_query),
      query_count_(query_count),
      plan_(PlanScan(rows.rows.row_count(), query_count, rows.rows.padded_dim(),
                     static_cast<unsigned>(scratch.size()))),
      pieces_at_once_(std::max<std::size_t>(
          1, kProductsAtOnce / (plan_.block_rows * plan_.group_queries * rows.rows.padded_dim()))),
      scratch_(scratch),
      result_(result) {
  std::size_t key_count = 0;
  for (std::size_t query = 0; query < query_count; ++query) {
    key_count += certificate::TopK::CapacityFor(Spec(query).k, rows.rows.row_count());
  }
  for (unsigned thread = 0; thread < plan_.threads; ++thread) {
    ScanScratch& own = scratch_[thread];
    base::GrowTo(own.scores, plan_.group_queries * plan_.block_rows);
    base::GrowTo(own.keys, key_count);
    base::GrowTo(own.collectors, query_count);
    base::GrowTo(own.rows_scanned, query_count);
  }
  for (ScanScratch& each : scratch_) each.joined = false;
}

bool ScanPass::Advance(ThreadPool& pool, const Turn& turn) {
  auto scan = [&](unsigned participant) { ScanPieces(participant, turn); };
  auto merge = [&](unsigned) {
    merged_.Claim(turn, query_count_, 1,
                  [this](std::size_t query, std::size_t) { MergeQuery(query); });
  };
  const bool alone = plan_.threads == 1;
  return steps_.Do(0, [&] {
    alone ? scan(0) : pool.Run(scan);
    return next_piece_.load(std::memory_order_relaxed) >= plan_.piece_count();
  }) && steps_.Do(1, [&] {
    // Merging one query takes less time than waking a thread.
    alone || query_count_ == 1 ? merge(0) : pool.Run(merge);
    return merged_.AreDone(query_count_);
  });
}

void ScanPass::Join(ScanScratch& scratch) const {
  std::span<RankKey> keys = scratch.keys;
  for (std::size_t query = 0; query < query_count_; ++query) {
    const QuerySpec& spec = Spec(query);
    const std::size_t size = certificate::TopK::CapacityFor(spec.k, rows_.rows.row_count());
    scratch.collectors[query] = certificate::TopK(keys.first(size), spec.k, spec.score_threshold);
    scratch.rows_scanned[query] = 0;
    keys = keys.subspan(size);
  }
  scratch.joined = true;
}

void ScanPass::ScanPieces(unsigned participant, const Turn& turn) {
  ScanScratch& scratch = scratch_[participant];
  std::size_t begin = 0;
  std::size_t end = 0;
  do {
    if (!ClaimPieces(begin, end)) return;
    if (!scratch.joined) Join(scratch);
    for (std::size_t piece = begin; piece < end; ++piece) ScanPiece(scratch, piece);
  } while (!turn.IsOver());
}

// Runs of neighbouring pieces first, because sequential reads are fastest; single pieces at the
// end, so that the threads finish together.
bool ScanPass::ClaimPieces(std::size_t& begin, std::size_t& end) {
  const std::size_t total = plan_.piece_count();
  begin = next_piece_.load(std::memory_order_relaxed);
  do {
    if (begin >= total) return false;
    end = begin + std::clamp<std::size_t>((total - begin) / (plan_.threads * std::size_t{4}), 1,
                                          pieces_at_once_);
  } while (!next_piece_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
  return true;
}

void ScanPass::ScanPiece(ScanScratch& scratch, std::size_t piece) const {
  const MatrixView& rows = rows_.rows;
  const std::size_t first_index = piece / plan_.group_count * plan_.block_rows;
  const std::size_t row_count = std::min(plan_.block_rows, rows.row_count() - first_index);
  const Row first_row = rows_.first_row + static_cast<Row>(first_index);
  const std::size_t group_begin = piece % plan_.group_count * plan_.group_queries;
  const std::size_t group_end = std::min(group_begin + plan_.group_queries, query_count_);

  const auto needs_block = [&](std::size_t query) {
    const RowMask* mask = Spec(query).mask;
    return mask == nullptr || AllowsAny(*mask, first_row, row_count);
  };
  // Consecutive queries that may return rows of this block are scored together; other queries are
  // skipped.
  for (std::size_t begin = group_begin; begin < group_end;) {
    if (!needs_block(begin)) {
      ++begin;
      continue;
    }
    std::size_t end = begin + 1;
    while (end < group_end && needs_block(end)) ++end;
    kernel_.score_block(rows.PaddedRow(first_index), row_count,
                        batch_.queries.PaddedRow(first_query_ + begin), end - begin,
                        rows.padded_dim(), scratch.scores.data());
    for (std::size_t query = begin; query < end; ++query) {
      const float* scores = scratch.scores.data() + (query - begin) * row_count;
      Collect(scratch, query, first_index, {scores, row_count});
    }
    begin = end;
  }
}

void ScanPass::Collect(ScanScratch& scratch, std::size_t query, std::size_t first_index,
                       std::span<const float> scores) const {
  const QuerySpec& spec = Spec(query);
  const Row first_row = rows_.first_row + static_cast<Row>(first_index);
  const std::span<const Row> excluded = Within(spec.excluded_rows, first_row, scores.size());
  certificate::TopK& collector = scratch.collectors[query];
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] >= collector.gate())) continue;
    const Row row = first_row + static_cast<Row>(i);
    if (spec.mask != nullptr && !spec.mask->Allows(row)) continue;
    if (std::binary_search(excluded.begin(), excluded.end(), row)) continue;
    collector.Offer(RankKey(scores[i], row));
  }
  scratch.rows_scanned[query] += scores.size();
}

void ScanPass::MergeQuery(std::size_t query) {
  certificate::TopK* best = nullptr;
  QueryCost cost;
  for (ScanScratch& scratch : scratch_) {
    if (!scratch.joined) continue;
    cost.rows_scanned += scratch.rows_scanned[query];
    if (best == nullptr) {
      best = &scratch.collectors[query];
      continue;
    }
    for (const RankKey key : scratch.collectors[query].kept()) best->Offer(key);
  }
  result_.SetCost(first_query_ + query, cost);
  if (best == nullptr) return;  // no thread joined: there are no rows
  const std::span<const RankKey> keys = best->Sorted();
  const std::span<Hit> hits = result_.Buffer(first_query_ + query);
  for (std::size_t i = 0; i < keys.size(); ++i) hits[i] = {keys[i].row(), keys[i].score()};
  result_.SetCount(first_query_ + query, keys.size());
}

}  // namespace simile::backend::cpu
