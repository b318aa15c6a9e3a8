#include "backend/cpu/gather.h"

#include <algorithm>
#include <atomic>

#include "backend/cpu/scan_plan.h"

namespace simile::backend::cpu {
namespace {

// Rows that a thread claims at a time.
constexpr std::size_t kRowsAtOnce = 64;

// Fewer numbers than this are copied by the calling thread: from scattered rows each takes about
// four times as long as a multiply-add (estimated).
constexpr std::size_t kSmallCopy = kSmallWork / 4;

}  // namespace

void Gather::Run(ThreadPool& pool, const SegmentRows& rows, const SearchBatch& batch,
                 std::span<const std::uint32_t> queries, SearchResult& result) {
  ListRows(rows, *batch.specs[queries.front()].mask);
  CopyRows(pool, rows);
  CopyQueries(batch, queries);
  const std::size_t dim = rows.rows.dim();
  const SegmentRows copies{
      {rows_.As<const float>(), passing_.size(), dim}, nullptr, rows.metric, 0};
  const SearchBatch copied{{queries_.As<const float>(), queries.size(), dim},
                           std::span(specs_).first(queries.size())};
  PrepareResult(copied, copies, result_);
  scan_.Run(pool, copies, copied, result_);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::span<const Hit> found = result_.Hits(i);
    const std::span<Hit> hits = result.Buffer(queries[i]);
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      hits[rank] = {passing_[found[rank].row], found[rank].score};
    }
    result.SetCount(queries[i], found.size());
    result.SetCost(queries[i], result_.Cost(i));
    result.SetEngine(queries[i], name_.c_str());
  }
}

void Gather::ListRows(const SegmentRows& rows, const RowMask& mask) {
  passing_.clear();
  const Row end = rows.first_row + static_cast<Row>(rows.rows.row_count());
  mask.ForEachAllowed(rows.first_row, end, [this](Row row) { passing_.push_back(row); });
}

void Gather::CopyRows(ThreadPool& pool, const SegmentRows& rows) {
  const std::size_t padded_dim = rows.rows.padded_dim();
  rows_.Reserve(passing_.size() * padded_dim * sizeof(float));
  std::atomic<std::size_t> next{0};
  auto copy = [&](unsigned) {
    ClaimParts(next, passing_.size(), kRowsAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) {
        std::copy_n(rows.rows.PaddedRow(passing_[i] - rows.first_row), padded_dim,
                    rows_.As<float>() + i * padded_dim);
      }
    });
  };
  if (passing_.size() * padded_dim <= kSmallCopy) {
    copy(0);
  } else {
    pool.Run(copy);
  }
}

void Gather::CopyQueries(const SearchBatch& batch, std::span<const std::uint32_t> queries) {
  const std::size_t padded_dim = batch.queries.padded_dim();
  queries_.Reserve(queries.size() * padded_dim * sizeof(float));
  if (specs_.size() < queries.size()) {
    specs_.resize(queries.size());
    excluded_.resize(queries.size());
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    std::copy_n(batch.queries.PaddedRow(queries[i]), padded_dim,
                queries_.As<float>() + i * padded_dim);
    const QuerySpec& spec = batch.specs[queries[i]];
    excluded_[i].clear();
    auto copy = passing_.begin();
    for (const Row row : spec.excluded_rows) {
      copy = std::lower_bound(copy, passing_.end(), row);
      if (copy == passing_.end()) break;
      if (*copy == row) excluded_[i].push_back(static_cast<Row>(copy - passing_.begin()));
    }
    specs_[i] = {.k = spec.k,
                 .mask = nullptr,
                 .excluded_rows = excluded_[i],
                 .score_threshold = spec.score_threshold};
  }
}

}  // namespace simile::backend::cpu
