#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "backend/cuda/device_memory.h"
#include "backend/cuda/pass_choices.h"
#include "backend/cuda/pass_plan.h"
#include "backend/gpu_memory.h"
#include "certificate/device_bounds.h"
#include "simile/row_mask.h"
#include "simile/segment.h"

namespace simile::backend::cuda {

// When more than one query in 64 overflows, the int8 scan does not suit the segment. With random
// directions one query in a million overflows.
inline constexpr std::size_t kOverflowShare = 64;

// Whether too large a share of a segment's last few thousand queries overflowed in the int8 scan.
// Older queries count less, so that neither a long good time nor a burst decides for millions of
// queries.
class RecentOverflows {
 public:
  // Counts queries of an int8 scan, or of the scan used instead while there are too many overflows.
  void Count(std::size_t queries, std::size_t overflows) {
    constexpr std::size_t kQueriesMax = 4'096;
    queries_ += queries;
    overflows_ += overflows;
    for (; queries_ > kQueriesMax; queries_ /= 2) overflows_ /= 2;
  }
  bool too_many() const {
    constexpr std::size_t kFew = 8;  // the first few overflows prove little
    return overflows_ > kFew + queries_ / kOverflowShare;
  }

 private:
  std::size_t queries_ = 0, overflows_ = 0;
};

// A row mask in device memory: a list of rows if few pass, else a bit per position.
struct Filter {
  RowMask mask{0};             // its source
  RowMask::Identity identity;  // of the mask that was used last
  std::size_t hash = 0;        // of mask
  unsigned passing = 0;        // rows of the segment
  bool is_list = false;
  unsigned* on_device = nullptr;  // list [passing] of rows, ascending; else words of positions
  bool in_use = false;            // used by the pass that is being prepared
  std::uint64_t used_at = 0;
};

// The most recently used filters of one segment. A mask is recognised by its identity. A mask with
// a new identity is recognised by its content, because calls make equal masks again. Nothing is
// allocated on the device after construction.
class FilterCache {
 public:
  //   row_of  [row_count] on the device; borrowed
  // Throws DeviceError.
  FilterCache(Device& device, unsigned row_count, Row first_row, const unsigned* row_of);

  // The mask's filter, made if it is not cached; in use until Release. Null when every place is in
  // use.
  //   list_max  a mask becomes a list when at most this many rows pass
  // Throws DeviceError. Cost: O(kFilterPlaces) for a known identity, else O(words of the mask), and
  // O(rows) when the filter is made.
  const Filter* Use(const RowMask& mask, unsigned list_max, cudaStream_t stream);
  // Ends the use of all filters.
  void Release();

 private:
  template <class Matches>
  Filter* Find(unsigned list_max, const Matches& matches);
  bool BecomesList(unsigned passing, unsigned list_max) const {
    return passing <= list_max && passing <= words_of_place_;
  }
  Filter* FreePlace();
  void Make(const RowMask& mask, unsigned list_max, cudaStream_t stream, Filter& filter);
  void CopyList(const RowMask& mask, cudaStream_t stream, const Filter& filter);
  void CopyMask(const RowMask& mask, cudaStream_t stream, const Filter& filter);

  Device& device_;
  const unsigned* const row_of_;
  const unsigned row_count_;
  const Row first_row_;
  std::size_t words_of_place_ = 0;
  DeviceArray<unsigned> places_;
  DeviceArray<unsigned> by_row_;  // a mask before its conversion to the order of positions
  std::vector<Filter> filters_;
  std::uint64_t uses_ = 0;
};

// The row at each position: a shuffled order, the same every time, so that a search can be
// repeated.
std::vector<unsigned> ShuffledRows(unsigned row_count);

// Everything in a plan that the captured graph depends on.
struct GraphKey {
  auto operator<=>(const GraphKey&) const = default;

  const KernelVariant* variant;
  unsigned slots;
  unsigned capacity;
  unsigned best_stride;
  FinishForm finish;
  bool is_mapped;
  unsigned query_block;   // on the host; the graph holds its address
  unsigned answer_block;  // likewise
  unsigned sample_groups;
  unsigned second_tiles;
  unsigned tile_rows;
  unsigned sample_rows;
  unsigned sample_group;
};

// A pass that was run before, and its graph once it has been captured.
struct PassGraph {
  GraphExec exec;
  GraphExec timed_exec;          // the graph between two events; null until a time is asked for
  std::vector<GateRanks> ranks;  // PassPlan::FindRanks by reach; 0 where not computed yet
  std::uint64_t workspace_number = 0;  // the graph holds addresses of this workspace's buffers
  std::uint64_t used_at = 0;
};

// One segment on the device: fp16 rows and perhaps int8 rows at shuffled positions, the row of each
// position, filters and graphs. The fp32 rows, in the caller's order, are on the device, or on the
// host and read from there. Borrows the device and the host's rows; used under the engine's lock
// after construction.
class ResidentRows {
 public:
  // Copies and converts on its own stream, while the device answers other searches.
  // Throws DeviceError. Cost: the fp32 rows cross to the device once.
  //   size  what is on the device, as planned
  ResidentRows(Device& device, const SegmentRows& rows, const ResidentSize& planned);

  const SegmentRows& host() const { return host_; }
  const SegmentSize& size() const { return size_; }
  std::uint64_t device_bytes() const { return device_bytes_; }
  Row first_row() const { return host_.first_row; }

  const __half* fp16_rows() const { return fp16_rows_.get(); }
  const float* rows() const { return rows_; }
  const unsigned* row_of() const { return row_of_.get(); }
  bool rows_on_device() const { return device_rows_.get() != nullptr; }
  // |cheap - canonical| in units, for gates of at most kLowestScore's magnitude.
  float bound(certificate::CheapStorage storage) const {
    return storage == certificate::CheapStorage::kHalf ? fp16_bound_ : fp32_bound_;
  }
  // A row times this power of two has at most unit length.
  double unit() const { return unit_; }

  // The rows for the int8 scan, without buffers for queries. codes is null when the plan left them
  // out.
  const kernels::Int8Rows& int8() const { return int8_; }
  // Whether new passes may use the int8 rows. False while too many answers overflow: many rows are
  // within the int8 bound of each other. fp16 has a smaller bound and separates more of them.
  bool has_int8() const { return int8_.codes != nullptr && !int8_overflows_.too_many(); }
  // The estimated distance that hits reach below the gate.
  double int8_margin() const;
  // Counts the queries of an int8 scan, or of the scan used instead.
  void CountInt8(std::size_t queries, std::size_t overflows) {
    int8_overflows_.Count(queries, overflows);
  }

  FilterCache& filters() { return filters_; }

  // Set while the segment is loaded, before the first search.
  const PassChoices& choices() const { return choices_; }
  void set_choices(PassChoices choices) { choices_ = std::move(choices); }

  // The cache entry of a plan's graph, empty until it is captured. May evict the least recently
  // used entry, so an entry stays valid during the next call.
  //   query_block, answer_block  on the host; the graph holds their addresses
  PassGraph& FindOrAddGraph(const PassPlan& plan, unsigned query_block, unsigned answer_block);

  // How often the capacity for hits has been doubled, because scores are denser than those of
  // random directions (many rows within the bound of each other).
  unsigned growth() const { return growth_; }
  void Grow();

 private:
  void Upload(Device& device, const ResidentSize& planned);
  void ConvertToFp16(Device& device, cudaStream_t stream);
  template <class T, std::size_t kCount, class Launch>
  std::array<T, kCount> ConvertInPieces(Device& device, cudaStream_t stream, Launch launch) const;
  void ConvertToInt8(Device& device, cudaStream_t stream);

  const SegmentRows host_;
  const SegmentSize size_;
  std::uint64_t device_bytes_;
  const double unit_;
  DeviceArray<unsigned> row_of_;
  DeviceArray<__half> fp16_rows_;
  DeviceArray<float> device_rows_;
  RegisteredMemory host_rows_;
  const float* rows_ = nullptr;  // the address that kernels use
  FilterCache filters_;
  float fp32_bound_ = 0;
  float fp16_bound_ = 0;
  DeviceArray<signed char> int8_codes_;
  DeviceArray<kernels::Int8Row> int8_terms_;
  DeviceArray<float> signs_;
  kernels::Int8Rows int8_;
  RecentOverflows int8_overflows_;
  PassChoices choices_;
  unsigned growth_ = 0;
  std::map<GraphKey, PassGraph> graphs_;
  std::uint64_t graph_uses_ = 0;
};

}  // namespace simile::backend::cuda
