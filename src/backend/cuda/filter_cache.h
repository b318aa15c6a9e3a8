#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/device_memory.h"
#include "simile/row_mask.h"

namespace simile::backend::cuda {

// A row mask as the device holds it: a list of rows where few pass, else a bit a position.
struct Filter {
  RowMask mask{0};       // what it was made from
  std::size_t hash = 0;  // of that
  unsigned passing = 0;  // rows of the segment
  bool is_list = false;
  unsigned* on_device = nullptr;  // list [passing] of rows, ascending; else words of positions
  bool in_use = false;            // by the pass that is being put together
  std::uint64_t used_at = 0;
};

// The filters of one segment that were used last. A mask is recognised by its content, so that
// whoever makes masks need not number them. Nothing is allocated on the device after construction.
class FilterCache {
 public:
  //   row_of  [row_count] on the device; borrowed
  // Throws DeviceError.
  FilterCache(Device& device, unsigned row_count, Row first_row, const unsigned* row_of);

  // Device bytes for a segment of so many rows.
  static std::uint64_t DeviceBytes(unsigned row_count);

  // The mask's filter, made where it is not there yet, and in use from now on. Null when every
  // place is in use.
  //   list_max  rows that may pass for a list
  // Throws DeviceError. Cost: a look at the mask's words; where it is made, at its rows, too.
  const Filter* Use(const RowMask& mask, unsigned list_max, cudaStream_t stream);
  // Nothing is in use any more.
  void Release();

 private:
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
  DeviceArray<unsigned> by_row_;  // a mask on its way into the order of positions
  std::vector<Filter> filters_;
  std::uint64_t uses_ = 0;
};

}  // namespace simile::backend::cuda
