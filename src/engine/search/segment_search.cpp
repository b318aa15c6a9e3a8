#include "engine/search/segment_search.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "simile/rank_key.h"

namespace simile::engine {

absl::Status SegmentSearch::Run(std::span<const std::shared_ptr<const SegmentIndex>> segments,
                                const SearchBatch& given, SearchResult& result) {
  SearchBatch batch = given;
  batch.device_time = device_time_;
  if (segments.size() == 1) return segments.front()->Search(batch, result);
  if (partial_.size() < segments.size()) partial_.resize(segments.size());
  std::size_t row_count = 0;
  for (std::size_t segment = 0; segment < segments.size(); ++segment) {
    row_count += segments[segment]->row_count();
    if (absl::Status status = segments[segment]->Search(batch, partial_[segment]); !status.ok()) {
      ReleasePartial();
      return status;
    }
  }
  Merge(segments.size(), row_count, batch, result);
  return absl::OkStatus();
}

void SegmentSearch::Begin(std::span<const std::shared_ptr<const SegmentIndex>> segments,
                          const SearchBatch& batch, SearchResult& result) {
  pass_.reset();
  segments_ = segments;
  batch_ = batch;
  batch_.device_time = device_time_;
  result_ = &result;
  segment_ = 0;
  if (segments.size() > 1 && partial_.size() < segments.size()) partial_.resize(segments.size());
}

bool SegmentSearch::Start() {
  if (segments_.size() != 1) return false;
  auto begun = segments_.front()->Begin(batch_, *result_);
  if (!begun.ok()) return false;  // Advance tries again, and returns the error
  pass_ = *std::move(begun);
  return pass_->Start();
}

// Searches one segment after the other, because segments of one device would share the device
// anyway.
absl::StatusOr<bool> SegmentSearch::Advance(const Turn& turn) {
  for (; segment_ < segments_.size(); ++segment_) {
    if (pass_ == nullptr) {
      SearchResult& result = segments_.size() == 1 ? *result_ : partial_[segment_];
      auto begun = segments_[segment_]->Begin(batch_, result);
      if (!begun.ok()) return begun.status();
      pass_ = *std::move(begun);
    }
    const absl::StatusOr<bool> done = pass_->Advance(turn);
    if (done.ok() && !*done) return false;
    pass_.reset();
    if (!done.ok()) return done;
  }
  if (segments_.size() == 1) return true;
  std::size_t row_count = 0;
  for (const auto& segment : segments_) row_count += segment->row_count();
  Merge(segments_.size(), row_count, batch_, *result_);
  return true;
}

absl::StatusOr<FallbackBackend> SegmentSearch::Score(
    std::span<const std::shared_ptr<const SegmentIndex>> segments, MatrixView queries,
    std::span<const Row> rows, std::span<float> scores) {
  assert(scores.size() == queries.row_count() * rows.size());
  products_ += scores.size() * queries.dim();
  if (segments.size() == 1) {
    return segments.front()->Score(queries, rows, scores, device_time_);
  }
  FallbackBackend first_fallback;
  std::size_t end_row = 0;
  std::size_t first = 0;  // of rows
  for (const auto& segment : segments) {
    end_row += segment->row_count();
    const auto end = std::lower_bound(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                                      static_cast<Row>(end_row));
    const std::size_t count = static_cast<std::size_t>(end - rows.begin()) - first;
    if (count == 0) continue;
    scores_.resize(queries.row_count() * count);
    absl::StatusOr<FallbackBackend> fallback =
        segment->Score(queries, rows.subspan(first, count), scores_, device_time_);
    if (!fallback.ok()) return fallback;
    if (first_fallback == nullptr) first_fallback = *std::move(fallback);
    for (std::size_t query = 0; query < queries.row_count(); ++query) {
      std::copy_n(scores_.data() + query * count, count,
                  scores.data() + query * rows.size() + first);
    }
    first += count;
  }
  return first_fallback;
}

// Compares every segment's next hit for each hit: segments are few, a heap would cost more.
void SegmentSearch::Merge(std::size_t segment_count, std::size_t row_count,
                          const SearchBatch& batch, SearchResult& result) {
  result.Reset(batch.specs, row_count);
  for (std::size_t query = 0; query < batch.specs.size(); ++query) {
    next_.assign(segment_count, 0);
    const std::span<Hit> buffer = result.Buffer(query);
    std::size_t count = 0;
    while (count < batch.specs[query].k) {
      RankKey best;  // below every real key
      std::size_t best_segment = segment_count;
      for (std::size_t segment = 0; segment < segment_count; ++segment) {
        const std::span<const Hit> hits = partial_[segment].Hits(query);
        if (next_[segment] == hits.size()) continue;
        const RankKey key = ToRankKey(hits[next_[segment]]);
        if (best_segment != segment_count && key < best) continue;
        best = key;
        best_segment = segment;
      }
      if (best_segment == segment_count) break;
      buffer[count++] = partial_[best_segment].Hits(query)[next_[best_segment]++];
    }
    result.SetCount(query, count);
    QueryCost cost;
    for (std::size_t segment = 0; segment < segment_count; ++segment) {
      cost += partial_[segment].Cost(query);
    }
    result.SetCost(query, cost);
    // One backend made all segments, so usually one engine answers for all. The first segment's
    // engine is reported.
    if (segment_count > 0) result.SetEngine(query, partial_.front().Engine(query));
  }
  for (std::size_t segment = 0; segment < segment_count && result.fallback() == nullptr;
       ++segment) {
    result.SetFallback(partial_[segment].fallback());
  }
  ReleasePartial();
}

void SegmentSearch::ReleasePartial() {
  for (SearchResult& partial : partial_) partial.Release();
}

}  // namespace simile::engine
