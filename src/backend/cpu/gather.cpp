#include "backend/cpu/gather.h"

#include <algorithm>

#include "backend/cpu/scan_pass.h"

namespace simile::backend::cpu {
namespace {

// Rows that a thread claims at a time.
constexpr std::size_t kRowsAtOnce = 64;

// The calling thread alone copies fewer numbers than this. Copying a number of a scattered row
// takes about four times as long as a multiply-add (estimated).
constexpr std::size_t kSmallCopy = kSmallWork / 4;

}  // namespace

void Gather::Begin(const SegmentRows& rows, const SearchBatch& batch,
                   std::span<const std::uint32_t> queries, SearchResult& result) {
  of_ = &rows;
  batch_ = batch;
  wanted_ = queries;
  result_ = &result;
  steps_.Reset();
  rows_copied_.Reset();
  queries_copied_ = 0;
  ListRows(*batch.specs[queries.front()].mask);
  const std::size_t row_bytes = rows.rows.padded_dim() * sizeof(float);
  rows_.Reserve(passing_.size() * row_bytes);
  queries_.Reserve(queries.size() * row_bytes);
  if (specs_.size() < queries.size()) {
    excluded_.resize(queries.size());  // both lines may throw; nothing else has changed yet
    specs_.resize(queries.size());
  }
}

bool Gather::Advance(ThreadPool& pool, const Turn& turn) {
  const bool done = steps_.Do(0, [&] { return CopyRows(pool, turn); }) &&
                    steps_.Do(1, [&] { return CopyQueries(turn); }) && scan_.Advance(pool, turn);
  if (done) WriteAnswers();
  return done;
}

std::uint64_t Gather::bytes() const {
  return rows_.bytes() + queries_.bytes() + passing_.capacity() * sizeof(Row) +
         copied_result_.buffer_bytes();
}

void Gather::ListRows(const RowMask& mask) {
  passing_.clear();
  const Row end = of_->first_row + static_cast<Row>(of_->rows.row_count());
  mask.ForEachAllowed(of_->first_row, end, [this](Row row) { passing_.push_back(row); });
}

bool Gather::CopyRows(ThreadPool& pool, const Turn& turn) {
  const std::size_t padded_dim = of_->rows.padded_dim();
  auto copy = [&](unsigned) {
    rows_copied_.Claim(turn, passing_.size(), kRowsAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t i = first; i < end; ++i) {
        std::copy_n(of_->rows.PaddedRow(passing_[i] - of_->first_row), padded_dim,
                    rows_.As<float>() + i * padded_dim);
      }
    });
  };
  if (passing_.size() * padded_dim <= kSmallCopy) {
    copy(0);
  } else {
    pool.Run(copy);
  }
  return rows_copied_.AreDone(passing_.size());
}

bool Gather::CopyQueries(const Turn& turn) {
  while (queries_copied_ < wanted_.size()) {
    CopyQuery(queries_copied_++);
    if (queries_copied_ < wanted_.size() && turn.IsOver()) return false;
  }
  BeginScan();
  return true;
}

void Gather::CopyQuery(std::size_t i) {
  const std::size_t padded_dim = batch_.queries.padded_dim();
  std::copy_n(batch_.queries.PaddedRow(wanted_[i]), padded_dim,
              queries_.As<float>() + i * padded_dim);
  const QuerySpec& spec = batch_.specs[wanted_[i]];
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

void Gather::BeginScan() {
  const std::size_t dim = of_->rows.dim();
  copies_ = {{rows_.As<const float>(), passing_.size(), dim}, nullptr, of_->metric, 0};
  const SearchBatch copied{{queries_.As<const float>(), wanted_.size(), dim},
                           std::span(specs_).first(wanted_.size())};
  PrepareResult(copied, copies_, copied_result_);
  scan_.Begin(copies_, copied, copied_result_);
}

void Gather::WriteAnswers() {
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const std::span<const Hit> found = copied_result_.Hits(i);
    const std::span<Hit> hits = result_->Buffer(wanted_[i]);
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      hits[rank] = {passing_[found[rank].row], found[rank].score};
    }
    result_->SetCount(wanted_[i], found.size());
    result_->SetCost(wanted_[i], copied_result_.Cost(i));
    result_->SetEngine(wanted_[i], name_);
  }
}

}  // namespace simile::backend::cpu
