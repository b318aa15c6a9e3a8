#include "backend/cuda/resident_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string_view>

#include "backend/cuda/profiler_range.h"
#include "backend/gpu_memory.h"
#include "base/split_mix.h"
#include "certificate/device_bounds.h"
#include "certificate/rotation.h"
#include "certificate/score_bound.h"
#include "kernels/convert.h"
#include "kernels/pass_inputs.h"

namespace simile::backend::cuda {
namespace {

std::size_t HashMask(const RowMask& mask) {
  const auto words = mask.words();
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(words.data()), words.size_bytes()});
}

// Bytes of fp32 rows that are copied between two waits. Estimated: 1 to 3 ms on the PCIe bus, far
// below the batch timeout and short for a search that waits.
constexpr std::size_t kCopyBytes = std::size_t{64} << 20;
constexpr std::size_t kGraphsMax = 64;
constexpr unsigned kGrowthMax = 6;
constexpr auto kInt8 = MemoryKind::kInt8;

SegmentSize ReadSize(const SegmentRows& rows) {
  return {static_cast<unsigned>(rows.rows.row_count()),
          static_cast<unsigned>(rows.rows.padded_dim())};
}

// One power of two scales all rows, so that cheap scores compare without norms. With a wide spread
// of lengths the fp16 values of short rows are less exact, so more rows need a canonical score.
double UnitOfRows(const SegmentRows& rows) {
  if (rows.metric == Metric::kCosine) return 1;
  double longest = 0;
  for (std::size_t row = 0; row < rows.rows.row_count(); ++row) {
    longest = std::max(longest, certificate::Length(rows.rows[row]));
  }
  return certificate::ChooseUnit(longest);
}

// Copies in pieces, so that no piece takes longer than the batch timeout.
void CopyToDevice(Device& device, void* to, const void* from, std::size_t bytes,
                  cudaStream_t stream) {
  for (std::size_t done = 0; done < bytes; done += kCopyBytes) {
    device.Check(cudaMemcpyAsync(
                     static_cast<std::byte*>(to) + done, static_cast<const std::byte*>(from) + done,
                     std::min(kCopyBytes, bytes - done), cudaMemcpyHostToDevice, stream),
                 "cudaMemcpyAsync");
    device.AwaitOrLose(stream);
  }
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
    const std::size_t hash = HashMask(mask);
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

std::vector<unsigned> ShuffledRows(unsigned row_count) {
  std::vector<unsigned> row_of(row_count);
  std::iota(row_of.begin(), row_of.end(), 0U);
  base::Shuffle(row_of);
  return row_of;
}

ResidentRows::ResidentRows(Device& device, const SegmentRows& rows, const ResidentSize& planned)
    : host_(rows),
      size_(ReadSize(rows)),
      device_bytes_(planned.total()),
      unit_(UnitOfRows(rows)),
      row_of_(device, size_.row_count, MemoryKind::kRowNumbers),
      fp16_rows_(device, std::size_t{size_.row_count} * size_.stride, MemoryKind::kFp16),
      filters_(device, size_.row_count, rows.first_row, row_of_.get()) {
  if (size_.row_count == 0) return;
  Upload(device, planned);
}

void ResidentRows::Upload(Device& device, const ResidentSize& planned) {
  const ProfilerRange range("load rows");
  const Stream stream = MakeStream(device);
  const std::vector<unsigned> row_of = ShuffledRows(size_.row_count);
  CopyToDevice(device, row_of_.get(), row_of.data(), row_of.size() * sizeof(unsigned),
               stream.get());
  const MatrixView& rows = host_.rows;
  if (planned.rows > 0) {
    device_rows_ = DeviceArray<float>(device, rows.bytes() / sizeof(float), MemoryKind::kFp32);
    CopyToDevice(device, device_rows_.get(), rows.data(), rows.bytes(), stream.get());
    rows_ = device_rows_.get();
  } else {
    // CUDA's interface has no const; kernels only read.
    void* host = const_cast<float*>(rows.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    device.Check(cudaHostRegister(host, rows.bytes(), cudaHostRegisterMapped), "cudaHostRegister");
    host_rows_ = RegisteredMemory(device, host);
    rows_ = static_cast<const float*>(MappedAddress(device, host));
  }
  ConvertToFp16(device, stream.get());
  if (planned.int8_rows == 0) return;
  try {
    ConvertToInt8(device, stream.get());
  } catch (const DeviceError& error) {
    // The card has less memory than the budget: searches use the fp16 rows alone.
    if (device.lost() || !absl::IsResourceExhausted(error.status())) throw;
    int8_codes_ = {};
    int8_terms_ = {};
    signs_ = {};
    device_bytes_ -= planned.int8_rows;
  }
}

// Enqueues the conversion of all rows, in pieces with a wait after each. Returns the maxima over
// all rows, at least 0.
//   launch  (first, count, maxima): enqueues the rows from position `first` on and checks the
//   launch
template <class T, std::size_t kCount, class Launch>
std::array<T, kCount> ResidentRows::ConvertInPieces(Device& device, cudaStream_t stream,
                                                    Launch launch) const {
  const DeviceArray<T> maxima(device, kCount, MemoryKind::kRowNumbers);
  device.Check(cudaMemsetAsync(maxima.get(), 0, maxima.bytes(), stream), "cudaMemsetAsync");
  const auto at_once =
      static_cast<unsigned>(std::max<std::size_t>(kCopyBytes / (size_.stride * sizeof(float)), 1));
  for (unsigned first = 0; first < size_.row_count; first += at_once) {
    launch(first, std::min(at_once, size_.row_count - first), maxima.get());
    device.AwaitOrLose(stream);
  }
  const PinnedMemory pinned = MakePinned(device, maxima.bytes());
  device.Check(
      cudaMemcpyAsync(pinned.get(), maxima.get(), maxima.bytes(), cudaMemcpyDeviceToHost, stream),
      "cudaMemcpyAsync");
  device.AwaitOrLose(stream);
  std::array<T, kCount> result;
  std::copy_n(static_cast<const T*>(pinned.get()), kCount, result.begin());
  return result;
}

void ResidentRows::ConvertToFp16(Device& device, cudaStream_t stream) {
  const auto convert = [&](unsigned first, unsigned count, unsigned long long* residual) {
    const kernels::ConvertRowsArguments arguments{
        rows_,
        row_of_.get() + first,
        count,
        size_.stride,
        static_cast<float>(unit_),
        fp16_rows_.get() + std::size_t{first} * size_.stride,
        residual};
    device.Check(kernels::LaunchConvertRowsToFp16(arguments, stream), "convert_rows_to_fp16");
  };
  const auto [residual] = ConvertInPieces<unsigned long long, 1>(device, stream, convert);
  const double longest = std::sqrt(std::bit_cast<double>(residual)) * certificate::kRoundUp;
  constexpr double kGateMax = -static_cast<double>(kernels::kLowestScore);
  using certificate::CheapStorage;
  fp32_bound_ = certificate::Fp16Bound(size_.stride, longest, kGateMax, CheapStorage::kFloat);
  fp16_bound_ = certificate::Fp16Bound(size_.stride, longest, kGateMax, CheapStorage::kHalf);
}

void ResidentRows::ConvertToInt8(Device& device, cudaStream_t stream) {
  const certificate::Rotation rotation(size_.stride);
  const auto stride = static_cast<unsigned>(rotation.rotated_dim());
  int8_codes_ = DeviceArray<signed char>(device, std::size_t{size_.row_count} * stride, kInt8);
  int8_terms_ = DeviceArray<kernels::Int8Row>(device, size_.row_count, kInt8);
  signs_ = DeviceArray<float>(device, std::size_t{2} * stride, kInt8);
  const std::size_t half = stride * sizeof(float);
  CopyToDevice(device, signs_.get(), rotation.first_signs().data(), half, stream);
  CopyToDevice(device, signs_.get() + stride, rotation.second_signs().data(), half, stream);
  const auto convert = [&](unsigned first, unsigned count, float* maxima) {
    const kernels::ConvertToInt8Arguments arguments{rows_,
                                                    row_of_.get() + first,
                                                    count,
                                                    size_.stride,
                                                    static_cast<float>(unit_),
                                                    signs_.get(),
                                                    stride,
                                                    int8_codes_.get() + std::size_t{first} * stride,
                                                    int8_terms_.get() + first,
                                                    reinterpret_cast<unsigned*>(maxima)};
    device.Check(kernels::LaunchConvertRowsToInt8(arguments, stream), "convert_rows_to_int8");
  };
  const auto greatest = ConvertInPieces<float, 2>(device, stream, convert);
  const auto limits = certificate::MakeInt8Limits(size_.stride, greatest[0], greatest[1]);
  // The errors of the coordinates cancel, so the sample's gate needs only a share of the bound:
  // five standard deviations of the sum of independent errors. A gate that is too high costs a
  // rescan; a lower gate lets more rows through.
  const double caution = std::min(5 / std::sqrt(static_cast<double>(stride)), 1.0);
  int8_.codes = int8_codes_.get();
  int8_.rows = int8_terms_.get();
  int8_.signs = signs_.get();
  int8_.stride = stride;
  int8_.limits = {limits.decoded, limits.residual, limits.per_length, limits.rest};
  int8_.caution = static_cast<float>(caution);
}

double ResidentRows::int8_margin() const {
  const kernels::Int8Limits& limits = int8_.limits;
  return (1 + static_cast<double>(int8_.caution)) *
         static_cast<double>(limits.residual + limits.per_length + limits.rest);
}

PassGraph& ResidentRows::FindOrAddGraph(const PassPlan& plan, unsigned query_block,
                                        unsigned answer_block) {
  const GraphKey key{plan.variant,       plan.slots,        plan.capacity,  plan.best_stride,
                     plan.finish,        plan.is_mapped,    query_block,    answer_block,
                     plan.sample_groups, plan.second_tiles, plan.tile_rows, plan.sample_rows,
                     plan.sample_group};
  if (graphs_.size() >= kGraphsMax && !graphs_.contains(key)) {
    graphs_.erase(std::ranges::min_element(graphs_, {},
                                           [](const auto& kept) { return kept.second.used_at; }));
  }
  PassGraph& graph = graphs_[key];
  graph.used_at = ++graph_uses_;
  return graph;
}

void ResidentRows::Grow() { growth_ = std::min(growth_ + 1, kGrowthMax); }

}  // namespace simile::backend::cuda
