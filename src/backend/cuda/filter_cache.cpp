#include "backend/cuda/filter_cache.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "backend/gpu_memory.h"
#include "kernels/order_mask.h"

namespace simile::backend::cuda {
namespace {

std::size_t HashOf(const RowMask& mask) {
  const auto words = mask.words();
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(words.data()), words.size_bytes()});
}

}  // namespace

FilterCache::FilterCache(Device& device, unsigned row_count, Row first_row, const unsigned* row_of)
    : device_(device),
      row_of_(row_of),
      row_count_(row_count),
      first_row_(first_row),
      words_of_place_(WordsOfFilterPlace(row_count)),
      places_(device, kFilterPlaces * words_of_place_, MemoryKind::kFilters),
      by_row_(device, WordsOfMaskByRow(row_count), MemoryKind::kFilters) {}

template <class Matches>
Filter* FilterCache::Find(unsigned list_max, const Matches& matches) {
  const auto found = std::ranges::find_if(filters_, [&](const Filter& filter) {
    return filter.is_list == BecomesList(filter.passing, list_max) && matches(filter);
  });
  return found != filters_.end() ? &*found : nullptr;
}

const Filter* FilterCache::Use(const RowMask& mask, unsigned list_max, cudaStream_t stream) {
  Filter* filter =
      Find(list_max, [&](const Filter& known) { return known.identity == mask.identity(); });
  if (filter == nullptr) {
    const std::size_t hash = HashOf(mask);
    filter = Find(list_max,
                  [&](const Filter& known) { return known.hash == hash && known.mask == mask; });
    if (filter == nullptr) {
      filter = FreePlace();
      if (filter == nullptr) return nullptr;
      filter->mask = RowMask(0);  // an empty mask, in case Make throws
      filter->identity = filter->mask.identity();
      Make(mask, list_max, stream, *filter);
      filter->mask = mask;
      filter->hash = hash;
    }
    filter->identity = mask.identity();
  }
  filter->in_use = true;
  filter->used_at = ++uses_;
  return filter;
}

void FilterCache::Release() {
  for (Filter& filter : filters_) filter.in_use = false;
}

Filter* FilterCache::FreePlace() {
  if (filters_.size() < kFilterPlaces) {
    filters_.reserve(kFilterPlaces);  // callers keep pointers to filters
    unsigned* place = places_.get() + filters_.size() * words_of_place_;
    filters_.emplace_back().on_device = place;
    return &filters_.back();
  }
  Filter* oldest = nullptr;
  for (Filter& filter : filters_) {
    if (!filter.in_use && (oldest == nullptr || filter.used_at < oldest->used_at)) oldest = &filter;
  }
  return oldest;
}

void FilterCache::Make(const RowMask& mask, unsigned list_max, cudaStream_t stream,
                       Filter& filter) {
  const std::size_t passing = mask.AllowedCount(first_row_, first_row_ + row_count_);
  filter.passing = static_cast<unsigned>(passing);
  filter.is_list = BecomesList(filter.passing, list_max);
  if (filter.is_list) {
    CopyList(mask, stream, filter);
  } else {
    CopyMask(mask, stream, filter);
  }
}

// The source is not pinned, so cudaMemcpyAsync has read it when it returns.
void FilterCache::CopyList(const RowMask& mask, cudaStream_t stream, const Filter& filter) {
  if (filter.passing == 0) return;
  std::vector<unsigned> rows;
  rows.reserve(filter.passing);
  mask.ForEachAllowed(first_row_, first_row_ + row_count_,
                      [&](Row row) { rows.push_back(row - first_row_); });
  device_.Check(cudaMemcpyAsync(filter.on_device, rows.data(), rows.size() * sizeof(unsigned),
                                cudaMemcpyHostToDevice, stream),
                "cudaMemcpyAsync");
}

void FilterCache::CopyMask(const RowMask& mask, cudaStream_t stream, const Filter& filter) {
  const unsigned first_bit = first_row_ % 64;
  const auto words = mask.words().subspan(first_row_ / 64, (first_bit + row_count_ + 63) / 64);
  device_.Check(cudaMemcpyAsync(by_row_.get(), words.data(), words.size_bytes(),
                                cudaMemcpyHostToDevice, stream),
                "cudaMemcpyAsync");
  const kernels::OrderMaskArguments arguments{by_row_.get(), first_bit, row_of_, row_count_,
                                              filter.on_device};
  device_.Check(kernels::LaunchOrderMask(arguments, stream), "order_mask");
}

}  // namespace simile::backend::cuda
