#include "backend/cpu/machine_probe.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/split_mix.h"

namespace simile::backend::cpu {
namespace {

using std::chrono::milliseconds;

// 18 MiB of fp32, the dimension of common sentence embeddings, and more codes than a second-level
// cache holds.
constexpr std::size_t kDim = 384;
constexpr std::size_t kRows = 12'288;
constexpr std::size_t kQueries = 64;
constexpr std::size_t kCentres = 64;
constexpr std::uint32_t kHits = 10;
// One row in this many passes the filter.
constexpr std::uint64_t kMaskShare = 16;

constexpr milliseconds kTimeMax{350};
// For one measurement, and for one whose times still disagree then.
constexpr milliseconds kMeasurementTime{12};
constexpr milliseconds kNoisyMeasurementTime{30};
// The least number of pairs, even beyond kMeasurementTime, and the number that is always enough.
constexpr std::size_t kPairsWanted = 9;
constexpr std::size_t kPairsMax = 21;

// Hashes a counter, so that the vectors are the same on every machine and in any order.
std::uint64_t Mix(std::uint64_t counter) {
  return base::SplitMix((counter + 1) * base::kSplitMixStep);
}

// Adds a number in -1 .. 1 to each value; one hash gives four of them.
void AddNoise(std::uint64_t number, std::array<float, kDim>& values) {
  static_assert(kDim % 4 == 0);
  for (std::size_t i = 0; i < kDim; i += 4) {
    std::uint64_t bits = Mix(number * kDim + i);
    for (std::size_t j = 0; j < 4; ++j, bits >>= 16) {
      values[i + j] += static_cast<float>(bits & 0xffff) * 0x1p-15F - 1;
    }
  }
}

// Draws a unit vector at a cosine of about 0.7 to one of the centres, as in real collections.
void DrawRow(std::uint64_t number, float* row) {
  std::array<float, kDim> values{};
  AddNoise(Mix(number) % kCentres, values);
  AddNoise(kCentres + number, values);
  float square = 0;
  for (const float value : values) square += value * value;
  for (std::size_t i = 0; i < kDim; ++i) row[i] = values[i] / std::sqrt(square);
}

}  // namespace

MachineProbe::MachineProbe(const Int8Options& options)
    : options_(options),
      end_(clock_.Now() + kTimeMax),
      pool_(options.threads),
      scan_(*options.canonical, pool_.thread_count(), "scan"),
      gather_(scan_, "gather"),
      memory_(pool_.thread_count()),
      rows_(std::make_unique_for_overwrite<float[]>((kRows + kQueries) * kDim)),
      mask_(kRows) {
  static_assert(PaddedDim(kDim) == kDim);
  DrawRows();
  for (Row row = 0; row < kRows; ++row) {
    if (Mix(~std::uint64_t{row}) % kMaskShare == 0) mask_.Allow(row);
  }
  packed_ = Pack(kRows);
}

void MachineProbe::DrawRows() {
  constexpr std::size_t kRowsAtOnce = 256;
  std::atomic<std::size_t> next{0};
  auto draw = [&](unsigned) {
    ClaimParts(next, kRows + kQueries, kRowsAtOnce, [&](std::size_t first, std::size_t end) {
      for (std::size_t row = first; row < end; ++row) DrawRow(row, rows_.get() + row * kDim);
    });
  };
  pool_.Run(draw);
}

SegmentRows MachineProbe::RowsUpTo(std::size_t row_count) const {
  return {{rows_.get(), row_count, kDim}, nullptr, Metric::kCosine, 0};
}

std::unique_ptr<const PackedRows> MachineProbe::Pack(std::size_t row_count) {
  PackedRows::Progress progress;
  return PackedRows::Build(RowsUpTo(row_count).rows,
                           ShapeOf(row_count, kDim, options_.tuning.block_bytes),
                           pool_.thread_count(), progress);
}

void MachineProbe::SelectQueries(std::size_t batch, const RowMask* mask) {
  QuerySpec spec;
  spec.k = kHits;
  spec.mask = mask;
  specs_.assign(batch, spec);
  queries_.resize(batch);
  std::iota(queries_.begin(), queries_.end(), 0U);
  const MatrixView all(rows_.get() + kRows * kDim, kQueries, kDim);
  next_query_ = next_query_ + batch > kQueries ? 0 : next_query_;
  batch_ = {all.Slice(next_query_, batch), specs_};
  next_query_ += batch;
}

// Leaves out the second pass for wrong guesses, which are too few to matter.
void MachineProbe::Pass(const SegmentRows& rows, const PackedRows& packed,
                        const Int8Kernel& kernel) {
  result_.Reset(queries_.size(), kHits);
  Int8Pass pass({rows, packed, kernel, *options_.canonical, options_.small_pass_bytes}, batch_,
                queries_, true, CodeWidth::kByte, memory_, result_);
  pass.Scan(pool_, WholeTurn());
  pass.Finish(pool_, WholeTurn());
}

void MachineProbe::Scan(const SegmentRows& rows) {
  result_.Reset(queries_.size(), kHits);
  scan_.Begin(rows, batch_, result_);
  scan_.Advance(pool_, WholeTurn());
}

void MachineProbe::GatherRows(const SegmentRows& rows) {
  result_.Reset(queries_.size(), kHits);
  gather_.Begin(rows, batch_, queries_, result_);
  gather_.Advance(pool_, WholeTurn());
}

template <class Work>
double MachineProbe::Time(Work work) const {
  const Clock::TimePoint start = clock_.Now();
  work();
  return std::chrono::duration<double>(clock_.Now() - start).count();
}

template <class First, class Second>
std::vector<TimePair> MachineProbe::TimeInTurn(std::size_t batch, const RowMask* mask, First first,
                                               Second second) {
  const Clock::TimePoint start = clock_.Now();
  std::vector<TimePair> pairs;
  const auto needs_more = [&] {
    const Clock::TimePoint now = clock_.Now();
    if (now >= end_) return false;
    if (pairs.size() < kPairsWanted) return true;
    if (pairs.size() < kPairsMax && now - start < kMeasurementTime) return true;
    return now - start < kNoisyMeasurementTime && !MiddleRatio(pairs).has_value();
  };
  if (!needs_more()) return pairs;
  // One untimed run of each grows the buffers and fills the caches.
  SelectQueries(batch, mask);
  first();
  second();
  while (needs_more()) {
    SelectQueries(batch, mask);
    // They alternate in going first, so that neither always runs on the caches the other left.
    TimePair pair;
    if (pairs.size() % 2 == 0) pair.first_s = Time(first);
    pair.second_s = Time(second);
    if (pairs.size() % 2 != 0) pair.first_s = Time(first);
    pairs.push_back(pair);
  }
  return pairs;
}

std::vector<TimePair> MachineProbe::LargeAndSmall(std::size_t batch) {
  const SegmentRows rows = RowsUpTo(kRows);
  return TimeInTurn(
      batch, nullptr, [&] { Pass(rows, *packed_, *options_.large); },
      [&] { Pass(rows, *packed_, *options_.small); });
}

std::vector<TimePair> MachineProbe::GatherAndPass(std::size_t batch) {
  const SegmentRows rows = RowsUpTo(kRows);
  const bool large = batch >= options_.tuning.large_batch_min;
  const Int8Kernel& kernel = large ? *options_.large : *options_.small;
  std::vector<TimePair> pairs = TimeInTurn(
      batch, &mask_, [&] { GatherRows(rows); }, [&] { Pass(rows, *packed_, kernel); });
  const auto passing = static_cast<double>(mask_.AllowedCount());
  for (TimePair& pair : pairs) {
    pair.first_s /= passing;
    pair.second_s /= static_cast<double>(kRows);
  }
  return pairs;
}

std::vector<TimePair> MachineProbe::ScanAndPass(std::size_t row_count) {
  if (clock_.Now() >= end_) return {};
  const SegmentRows rows = RowsUpTo(row_count);
  const std::unique_ptr<const PackedRows> own = row_count < kRows ? Pack(row_count) : nullptr;
  const PackedRows& packed = own != nullptr ? *own : *packed_;
  return TimeInTurn(
      1, nullptr, [&] { Scan(rows); }, [&] { Pass(rows, packed, *options_.small); });
}

}  // namespace simile::backend::cpu
