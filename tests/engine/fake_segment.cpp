#include "engine/fake_segment.h"

#include <algorithm>

#include "certificate/canonical_score.h"
#include "simile/rank_key.h"

namespace simile::engine {
namespace {

// Computes everything in its last piece.
class FakePass final : public SearchPass {
 public:
  FakePass(const FakeSegment& segment, const SearchBatch& batch, SearchResult& result)
      : segment_(segment), batch_(batch), result_(result) {}

  ~FakePass() override {
    if (is_started_ && segment_.on_abandon) segment_.on_abandon();
  }

  bool Start() override {
    if (!segment_.starts) return false;
    is_started_ = true;
    if (segment_.on_start) segment_.on_start();
    return true;
  }

  bool HasEnded() const override { return is_started_ && segment_.device_has_ended; }

  absl::StatusOr<bool> Advance(const Turn& turn) override {
    is_started_ = false;
    if (turn.LeavesOneThread()) ++segment_.turns_with_one_thread_less;
    do {
      if (segment_.on_piece) segment_.on_piece();
      if (++done_ < segment_.pieces) continue;
      if (absl::Status status = segment_.Search(batch_, result_); !status.ok()) return status;
      return true;
    } while (!turn.IsOver());
    return false;
  }
  std::uint64_t bytes() const override { return 1'000; }

 private:
  const FakeSegment& segment_;
  const SearchBatch batch_;
  SearchResult& result_;
  std::size_t done_ = 0;
  bool is_started_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SearchPass>> FakeSegment::Begin(const SearchBatch& batch,
                                                               SearchResult& result) const {
  return std::make_unique<FakePass>(*this, batch, result);
}

absl::Status FakeSegment::Search(const SearchBatch& batch, SearchResult& result) const {
  {
    const std::lock_guard lock(mutex_);
    passes_.push_back({batch.specs.size(), batch.queries.data()});
  }
  if (on_search) on_search();
  if (!status.ok()) return status;
  AddTo(batch.device_time);

  result.Reset(batch.specs, rows_.row_count());
  // The processor's kernel and not the oracle, which takes seconds under sanitizers.
  const certificate::CanonicalKernel& kernel = *certificate::SupportedCanonicalKernels().front();
  std::vector<float> scores(rows_.row_count());
  std::vector<RankKey> keys;
  for (std::size_t query = 0; query < batch.specs.size(); ++query) {
    const QuerySpec& spec = batch.specs[query];
    kernel.score_block(rows_.data(), rows_.row_count(), batch.queries.PaddedRow(query), 1,
                       rows_.padded_dim(), scores.data());
    keys.clear();
    for (std::size_t index = 0; index < rows_.row_count(); ++index) {
      const Row row = first_row_ + static_cast<Row>(index);
      if (spec.mask != nullptr && !spec.mask->Allows(row)) continue;
      if (std::binary_search(spec.excluded_rows.begin(), spec.excluded_rows.end(), row)) continue;
      if (scores[index] < spec.score_threshold) continue;
      keys.emplace_back(scores[index], row);
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    const std::size_t count = std::min<std::size_t>(spec.k, keys.size());
    for (std::size_t rank = 0; rank < count; ++rank) {
      result.Buffer(query)[rank] = {keys[rank].row(), keys[rank].score()};
    }
    result.SetCount(query, count);
    result.SetCost(query, {rows_.row_count(), 1});
  }
  if (spoil) spoil(result);
  return absl::OkStatus();
}

absl::StatusOr<FallbackBackend> FakeSegment::Score(MatrixView queries, std::span<const Row> rows,
                                                   std::span<float> scores,
                                                   DeviceTime* device_time) const {
  if (!status.ok()) return status;
  AddTo(device_time);
  if (absl::Status scored = on_score ? on_score() : absl::OkStatus(); !scored.ok()) return scored;
  for (std::size_t query = 0; query < queries.row_count(); ++query) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      scores[query * rows.size() + i] =
          certificate::CanonicalScoreReference(queries[query], rows_[rows[i] - first_row_]);
    }
  }
  return scorer;
}

std::vector<FakeSegment::Pass> FakeSegment::passes() const {
  const std::lock_guard lock(mutex_);
  return passes_;
}

}  // namespace simile::engine
