#include "backend/cpu/calibration.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <vector>

#include "backend/cpu/gather.h"
#include "backend/cpu/int8_kernel.h"
#include "backend/cpu/int8_pass.h"
#include "backend/cpu/int8_tuning.h"
#include "backend/cpu/packed_codes.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/scan_search.h"
#include "backend/cpu/thread_pool.h"
#include "base/split_mix.h"
#include "simile/clock.h"
#include "simile/query.h"
#include "simile/row_mask.h"

namespace simile::backend::cpu {
namespace {

// Measures the engine's own strategies over a collection of synthetic vectors that is the same on
// every machine. Made for one calibration, used by one thread.
class MachineProbe final : public CalibrationProbe {
 public:
  // Draws and packs the vectors. Throws std::bad_alloc.
  explicit MachineProbe(const Int8Options& options);

  std::vector<TimePair> LargeAndSmall(std::size_t batch) override;
  std::vector<TimePair> GatherAndPass(std::size_t batch) override;
  std::vector<TimePair> ScanAndPass(std::size_t row_count) override;

 private:
  void DrawRows();
  std::unique_ptr<const PackedRows> Pack(std::size_t row_count);
  SegmentRows RowsUpTo(std::size_t row_count) const;

  // Selects other queries each time, so that branch prediction does not learn them.
  void SelectQueries(std::size_t batch, const RowMask* mask);
  void Pass(const SegmentRows& rows, const PackedRows& packed, const Int8Kernel& kernel);
  void Scan(const SegmentRows& rows);
  void GatherRows(const SegmentRows& rows);

  // Runs both in turn until there are enough pairs or this measurement's share of the time is
  // spent.
  template <class First, class Second>
  std::vector<TimePair> TimeInTurn(std::size_t batch, const RowMask* mask, First first,
                                   Second second);
  template <class Work>
  double Time(Work work) const;

  const Int8Options options_;
  const RealClock clock_;
  const Clock::TimePoint end_;
  ThreadPool pool_;
  ScanSearch scan_;
  Gather gather_;
  Int8Memory memory_;
  const std::unique_ptr<float[]> rows_;  // [rows + queries, dim]
  RowMask mask_;
  std::unique_ptr<const PackedRows> packed_;

  std::size_t next_query_ = 0;
  std::vector<QuerySpec> specs_;
  std::vector<std::uint32_t> queries_;
  SearchBatch batch_;
  SearchResult result_;
};

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
// The time for one measurement, and for one whose times still disagree after that.
constexpr milliseconds kMeasurementTime{12};
constexpr milliseconds kNoisyMeasurementTime{30};
// The least number of pairs, even beyond kMeasurementTime, and the number that is always enough.
constexpr std::size_t kPairsWanted = 9;
constexpr std::size_t kPairsMax = 21;

// Hashes a counter, so that the vectors are the same on every machine and in any order.
std::uint64_t Mix(std::uint64_t counter) {
  return base::SplitMix((counter + 1) * base::kSplitMixStep);
}

// Adds a number in -1 .. 1 to each value; one hash gives four numbers.
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
                           ChooseShape(row_count, kDim, options_.tuning.block_bytes),
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
    // The strategies alternate in going first, so that neither always runs on the caches that the
    // other left.
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

constexpr std::size_t kPairsMin = 5;
constexpr double kDisagreementMax = 1.25;

// The lower quartile: a quarter of the numbers do not exceed it.
double LowerQuartile(std::vector<double> numbers) {
  const auto quarter = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 4);
  std::ranges::nth_element(numbers, quarter);
  return *quarter;
}

std::size_t Clamped(std::size_t number, std::optional<std::size_t> TuningFindings::*which) {
  const auto values = TuningValues();
  const auto value = std::ranges::find(values, which, &TuningValue::found);
  return std::clamp(number, value->min, value->max);
}

constexpr std::array<std::size_t, 4> kBatches{16, 8, 6, kQueriesTogether + 1};
constexpr std::array<std::size_t, 5> kScanRows{512, 1'024, 2'048, 4'096, 8'192};
constexpr std::size_t kManyQueries = 32;

// Measures one size after another until a ratio lies beyond the crossing, and then one more. Empty
// when the times are too noisy to decide.
//   measure  the time pairs of one size
template <class Measure>
std::vector<RatioAt> MeasureUntilBeyond(std::span<const std::size_t> sizes, double beyond_from,
                                        Measure measure) {
  std::vector<RatioAt> ratios;
  bool beyond = false;
  for (const std::size_t size : sizes) {
    const std::optional<double> ratio = MiddleRatio(measure(size));
    if (!ratio) return {};
    ratios.push_back({size, *ratio});
    if (beyond) break;
    beyond = *ratio > beyond_from;
  }
  if (IsDenied(ratios, beyond_from)) return {};
  return ratios;
}

std::optional<std::size_t> FindLargeBatchMin(CalibrationProbe& probe) {
  const auto ratios = MeasureUntilBeyond(
      kBatches, 1, [&](std::size_t batch) { return probe.LargeAndSmall(batch); });
  if (ratios.empty()) return std::nullopt;
  return LargeBatchMinFor(ratios);
}

std::optional<std::size_t> FindGatherShare(CalibrationProbe& probe) {
  const std::optional<double> for_one = MiddleRatio(probe.GatherAndPass(1));
  const std::optional<double> for_many = MiddleRatio(probe.GatherAndPass(kManyQueries));
  if (!for_one || !for_many) return std::nullopt;
  return GatherShareFor(*for_one, *for_many);
}

std::optional<std::size_t> FindScanRowsMax(CalibrationProbe& probe) {
  const auto ratios = MeasureUntilBeyond(kScanRows, kScanCostMax,
                                         [&](std::size_t rows) { return probe.ScanAndPass(rows); });
  if (ratios.empty()) return std::nullopt;
  return ScanRowsMaxFor(ratios);
}

// The size of the second-level cache. When sysfs lists no caches, as in some containers, sysconf
// may still know the size.
std::optional<std::size_t> SecondLevelOfThisMachine() {
  if (const auto bytes = SecondLevelBytes()) return bytes;
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return static_cast<std::size_t>(bytes);
#endif
  return std::nullopt;
}

}  // namespace

std::optional<double> MiddleRatio(std::span<const TimePair> pairs) {
  std::vector<double> ratios, firsts, seconds;
  for (const TimePair& pair : pairs) {
    // When the clock did not tick, there is no measurement.
    if (pair.first_s <= 0 || pair.second_s <= 0) continue;
    ratios.push_back(pair.first_s / pair.second_s);
    firsts.push_back(pair.first_s);
    seconds.push_back(pair.second_s);
  }
  if (ratios.size() < kPairsMin) return std::nullopt;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::ranges::nth_element(ratios, middle);
  const double undisturbed = LowerQuartile(firsts) / LowerQuartile(seconds);
  const double disagreement = std::max(*middle / undisturbed, undisturbed / *middle);
  return disagreement < kDisagreementMax ? std::optional(*middle) : std::nullopt;
}

bool IsDenied(std::span<const RatioAt> ratios, double beyond_from) {
  constexpr double kClearly = 0.9;
  if (ratios.size() < 2) return false;
  return ratios[ratios.size() - 2].ratio > beyond_from &&
         ratios.back().ratio < kClearly * beyond_from;
}

std::size_t BlockBytesFor(std::size_t second_level_bytes) {
  return Clamped(second_level_bytes / 8, &TuningFindings::block_bytes);
}

std::size_t LargeBatchMinFor(std::span<const RatioAt> large_to_small) {
  std::size_t least = 2 * large_to_small.front().at;
  for (const RatioAt& measured : large_to_small) {
    if (measured.ratio > 1) break;
    least = measured.at;
  }
  return Clamped(least, &TuningFindings::large_batch_min);
}

std::size_t GatherShareFor(double for_one, double for_many) {
  constexpr double kAnyLarge = 1e6;  // caps the ratio before it is rounded
  const double share = std::min(std::ceil(std::sqrt(for_one * for_many)), kAnyLarge);
  return Clamped(static_cast<std::size_t>(share), &TuningFindings::gather_share);
}

std::size_t ScanRowsMaxFor(std::span<const RatioAt> scan_to_pass) {
  std::size_t largest = 0;
  for (const RatioAt& measured : scan_to_pass) {
    if (measured.ratio > kScanCostMax) break;
    largest = measured.at;
  }
  return Clamped(largest, &TuningFindings::scan_rows_max);
}

TuningFindings FindTuning(CalibrationProbe& probe, bool kernels_differ,
                          std::optional<std::size_t> second_level_bytes) {
  TuningFindings findings;
  if (second_level_bytes) findings.block_bytes = BlockBytesFor(*second_level_bytes);
  if (kernels_differ) findings.large_batch_min = FindLargeBatchMin(probe);
  findings.gather_share = FindGatherShare(probe);
  findings.scan_rows_max = FindScanRowsMax(probe);
  return findings;
}

TuningFindings Calibrate(const Int8Options& options) {
  const std::optional<std::size_t> second_level_bytes = SecondLevelOfThisMachine();
  Int8Options tuned = options;
  if (second_level_bytes) tuned.tuning.block_bytes = BlockBytesFor(*second_level_bytes);
  try {
    MachineProbe probe(tuned);
    return FindTuning(probe, options.large != options.small, second_level_bytes);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace simile::backend::cpu
