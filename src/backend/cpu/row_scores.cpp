#include "backend/cpu/row_scores.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <new>

#include <fmt/format.h>

#include "backend/cpu/scan_pass.h"
#include "base/error_detail.h"
#include "base/memory_pages.h"

namespace simile::backend::cpu {
namespace {

// Rows that a thread claims at a time; runs of neighbours among them are scored together.
constexpr std::size_t kRowsAtOnce = 64;

// The length of the run of consecutive rows at the front.
std::size_t RunLength(std::span<const Row> rows) {
  std::size_t length = 1;
  while (length < rows.size() && rows[length] == rows[0] + length) ++length;
  return length;
}

}  // namespace

absl::StatusOr<FallbackBackend> RowScores::Run(ThreadPool& pool, const SegmentRows& rows,
                                               MatrixView queries, std::span<const Row> wanted,
                                               std::span<float> scores) {
  try {
    Score(pool, rows, queries, wanted, scores);
  } catch (const std::bad_alloc&) {
    return base::Error(
        base::ErrorReason::kOutOfMemory,
        fmt::format("no memory to score {} rows with {} vectors; ask for fewer at once",
                    wanted.size(), queries.row_count()));
  }
  return nullptr;
}

void RowScores::Score(ThreadPool& pool, const SegmentRows& rows, MatrixView queries,
                      std::span<const Row> wanted, std::span<float> scores) {
  const std::size_t query_count = queries.row_count();
  const std::size_t padded_dim = rows.rows.padded_dim();
  assert(queries.dim() == rows.rows.dim() && scores.size() == query_count * wanted.size());
  base::GrowTo(blocks_, pool.thread_count());
  for (std::vector<float>& block : blocks_) base::GrowTo(block, query_count * kRowsAtOnce);

  // Scores `count` consecutive rows, from wanted[at] on.
  const auto score_run = [&](std::size_t at, std::size_t count, float* block) {
    kernel_.score_block(rows.rows.PaddedRow(wanted[at] - rows.first_row), count, queries.data(),
                        query_count, padded_dim, block);
    for (std::size_t query = 0; query < query_count; ++query) {
      std::copy_n(block + query * count, count, scores.data() + query * wanted.size() + at);
    }
  };
  std::atomic<std::size_t> next{0};
  auto work = [&](unsigned participant) {
    ClaimParts(next, wanted.size(), kRowsAtOnce, [&](std::size_t begin, std::size_t end) {
      for (std::size_t at = begin; at < end;) {
        const std::size_t count = RunLength(wanted.subspan(at, end - at));
        score_run(at, count, blocks_[participant].data());
        at += count;
      }
    });
  };
  if (wanted.size() * query_count * padded_dim <= kSmallWork) {
    work(0);
  } else {
    pool.Run(work);
  }
}

}  // namespace simile::backend::cpu
