#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "backend/cuda/device_memory.h"
#include "backend/cuda/filter_cache.h"
#include "backend/cuda/pass_plan.h"
#include "certificate/half_bound.h"
#include "simile/segment.h"

namespace simile::backend::cuda {

// Device bytes of a segment, part by part: what ResidentRows allocates, to the byte.
struct ResidentSize {
  std::uint64_t halves = 0;
  std::uint64_t rows = 0;  // 0 where the fp32 rows stay on the host
  std::uint64_t row_numbers = 0;
  std::uint64_t filters = 0;

  std::uint64_t total() const { return halves + rows + row_numbers + filters; }
};
ResidentSize PlanResident(const SegmentSize& segment, bool rows_on_device);

// The row at each position: the same order every time, so that a search can be repeated.
std::vector<unsigned> ShuffledRows(unsigned row_count);

// A pass that was run before, and its graph once it has been captured.
struct PassGraph {
  GraphExec exec;
  std::uint64_t workspace_number = 0;  // buffers of another workspace lie elsewhere
  std::uint64_t used_at = 0;
};

// One segment on the device: halves at shuffled positions, fp32 rows in the caller's order (on the
// device, or on the host and read from there), the row of each position, filters, graphs. Borrows
// the device and the host's rows; used under the engine's lock once it is made.
class ResidentRows {
 public:
  // Copies and converts on a stream of its own, beside whatever the device answers meanwhile.
  // Throws DeviceError. Cost: the fp32 rows cross to the device once.
  ResidentRows(Device& device, const SegmentRows& rows, bool rows_on_device);

  const SegmentRows& host() const { return host_; }
  const SegmentSize& size() const { return size_; }
  std::uint64_t device_bytes() const { return device_bytes_; }
  Row first_row() const { return host_.first_row; }

  const __half* halves() const { return halves_.get(); }
  const float* rows() const { return rows_; }
  const unsigned* row_of() const { return row_of_.get(); }
  bool rows_on_device() const { return device_rows_.get() != nullptr; }
  // |cheap - canonical| in units; of gates at most kLowestScore's magnitude.
  float bound(certificate::CheapStorage storage) const {
    return storage == certificate::CheapStorage::kHalf ? bound_of_halves_ : bound_of_floats_;
  }
  // A row times this has at most unit length. A power of two.
  double unit() const { return unit_; }

  FilterCache& filters() { return filters_; }

  // Where a plan's graph is kept; empty until it is captured. Those used last are kept.
  PassGraph& GraphOf(const PassPlan& plan);

  // How often room for hits has been doubled, because rows lie denser than a random order of
  // scores lets expect (many within the bound of each other).
  unsigned growth() const { return growth_; }
  void Grow();

 private:
  void Upload(Device& device, bool rows_on_device);
  void Halve(Device& device, cudaStream_t stream);

  const SegmentRows host_;
  const SegmentSize size_;
  const std::uint64_t device_bytes_;
  const double unit_;
  DeviceArray<unsigned> row_of_;
  DeviceArray<__half> halves_;
  DeviceArray<float> device_rows_;
  RegisteredMemory host_rows_;
  const float* rows_ = nullptr;  // as kernels reach them
  FilterCache filters_;
  float bound_of_floats_ = 0;
  float bound_of_halves_ = 0;
  unsigned growth_ = 0;
  using GraphKey = std::tuple<PassPlan::Road, unsigned, unsigned, unsigned, bool, unsigned,
                              unsigned, unsigned, unsigned>;
  std::map<GraphKey, PassGraph> graphs_;
  std::uint64_t graph_uses_ = 0;
};

}  // namespace simile::backend::cuda
