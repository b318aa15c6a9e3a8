#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/device_memory.h"
#include "simile/row_mask.h"

namespace simile::backend::cuda {

// A row mask in device memory: a list of rows where few pass, else a bit per position.
struct Filter {
  RowMask mask{0};             // its source
  RowMask::Identity identity;  // of the mask that was used last
  std::size_t hash = 0;        // of mask
  unsigned passing = 0;        // rows of the segment
  bool is_list = false;
  unsigned* on_device = nullptr;  // list [passing] of rows, ascending; else words of positions
  bool in_use = false;            // by the pass that is being prepared
  std::uint64_t used_at = 0;
};

// The most recently used filters of one segment. A mask is recognised by its identity, and one that
// is new by its content: calls make the same mask anew. Nothing is allocated on the device after
// construction.
class FilterCache {
 public:
  //   row_of  [row_count] on the device; borrowed
  // Throws DeviceError.
  FilterCache(Device& device, unsigned row_count, Row first_row, const unsigned* row_of);

  // The mask's filter, made if it is not cached; in use until Release. Null when every place is in
  // use.
  //   list_max  a mask becomes a list when at most this many rows pass
  // Throws DeviceError. Cost: O(kFilterPlaces) for a mask that was used last time, else O(words of
  // the mask), and O(rows) when it is made.
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

}  // namespace simile::backend::cuda
