#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "simile/segment.h"

namespace simile::engine {

// A segment that answers by the definition: every row's reference score, sorted by rank key.
// Records its passes, and lets a test block them, fail them or change their answers.
class FakeSegment final : public SegmentIndex {
 public:
  // owner keeps the rows alive; without one the test does.
  explicit FakeSegment(MatrixView rows, Row first_row = 0, std::shared_ptr<const void> owner = {})
      : rows_(rows), first_row_(first_row), owner_(std::move(owner)) {}

  std::size_t row_count() const override { return rows_.row_count(); }
  std::size_t dim() const override { return rows_.dim(); }
  absl::Status Search(const SearchBatch& batch, SearchResult& result) const override;
  absl::StatusOr<std::unique_ptr<SearchPass>> Begin(const SearchBatch& batch,
                                                    SearchResult& result) const override;
  bool CanPause() const override { return pieces > 1 && !starts; }
  absl::StatusOr<double> Built() const override { return built ? 1.0 : 0.5; }
  absl::StatusOr<FallbackBackend> Score(MatrixView queries, std::span<const Row> rows,
                                        std::span<float> scores,
                                        DeviceTime* device_time) const override;

  struct Pass {
    std::size_t batch = 0;
    const float* queries = nullptr;
  };
  std::vector<Pass> passes() const;

  std::atomic<bool> built = true;  // its index

  // Set before the first search.
  std::size_t pieces = 1;          // of a search that may be paused
  std::function<void()> on_piece;  // before each of these
  mutable std::atomic<std::size_t> turns_with_one_thread_less = 0;
  bool starts = false;  // a search runs without a thread until it is advanced
  std::function<void()> on_start;
  std::atomic<bool> device_has_ended = false;
  std::function<void()> on_abandon;          // of a search that was started and not advanced
  std::function<void()> on_search;           // before anything is computed
  std::function<void(SearchResult&)> spoil;  // after everything is computed
  absl::Status status;                       // returned instead of an answer
  FallbackBackend scorer;                    // that Score returns
  std::function<absl::Status()> on_score;    // before rows are scored; an error is returned
  double device_us = 0;                      // of a search or scores, where a time is asked for

 private:
  void AddTo(DeviceTime* device_time) const {
    if (device_time != nullptr && device_us > 0) device_time->Add(device_us);
  }

  const MatrixView rows_;
  const Row first_row_;
  const std::shared_ptr<const void> owner_;
  mutable std::mutex mutex_;
  mutable std::vector<Pass> passes_;
};

}  // namespace simile::engine
