#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>

#include "engine/fake_segment.h"
#include "engine/gate.h"
#include "simile/backend.h"

namespace simile::engine {

// Makes FakeSegments, or fails. Its members are set before a load.
class FakeBackend final : public Backend {
 public:
  const BackendInfo& info() const override { return info_; }
  ResidentPlan Plan(const SegmentShape&) const override { return plan; }
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> MakeResident(
      const SegmentRows& rows) override {
    gate.Pass();
    if (on_make) on_make();
    ++segments_made;
    if (out_of_memory) throw std::bad_alloc();
    if (!status.ok()) return status;
    auto segment = std::make_shared<FakeSegment>(rows.rows, rows.first_row, rows.owner);
    segment->spoil = spoil;
    return segment;
  }

  ResidentPlan plan;
  Gate gate;  // that every load passes before it is indexed
  std::function<void()> on_make;
  std::atomic<std::size_t> segments_made = 0;
  bool out_of_memory = false;
  absl::Status status;
  std::function<void(SearchResult&)> spoil;

 private:
  const BackendInfo info_{"cpu", "scan-fake", "a test"};
};

}  // namespace simile::engine
