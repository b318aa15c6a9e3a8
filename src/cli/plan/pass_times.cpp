#include "cli/plan/pass_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "backend/accelerator_kinds.h"
#include "cli/plan/known_cards.h"

namespace simile::cli {
namespace {

// The card whose host and server were measured.
constexpr std::string_view kH100 = "H100 80GB HBM3";

// Medians of tests/bench/gpu/run.py, 2026-11-28, drivers 580.159.04, clustered vectors. Passes of
// the H200 have no host time: 0.
constexpr std::array kPasses{
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 62423, 384, 1, 10, 30.33, 40.31},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 62423, 384, 32, 10, 42.65, 79.24},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 62423, 384, 100, 10, 89.64, 159.1},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 62423, 384, 1000, 10, 213.3, 774.7},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 62423, 384, 1, 100, 43.65, 54.21},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 62423, 384, 32, 100, 66.37, 120.3},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 62423, 384, 100, 100, 103.1, 215.5},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 62423, 384, 1000, 100, 267.3, 1112},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 62423, 384, 1, 1000, 69.27, 92.37},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 62423, 384, 32, 1000, 130.7, 254.1},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 62423, 384, 100, 1000, 165.2, 471.6},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 62423, 384, 1000, 1000, 785, 3855},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 1000000, 768, 1, 10, 310, 320.9},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 1000000, 768, 32, 10, 334.8, 393.1},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 1000000, 768, 100, 10, 839.8, 948.4},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 1000000, 768, 1000, 10, 3261, 4031},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 1000000, 768, 1, 100, 327.6, 333.7},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 1000000, 768, 32, 100, 363.3, 420.5},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 1000000, 768, 100, 100, 864.9, 993.4},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 1000000, 768, 1000, 100, 3620, 4209},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 1000000, 768, 1, 1000, 373.8, 387.6},
    MeasuredPass{"H100 80GB HBM3", PassKind::kInt8Scan, 1000000, 768, 32, 1000, 502.2, 607},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 1000000, 768, 100, 1000, 1018, 1301},
    MeasuredPass{"H100 80GB HBM3", PassKind::kGemm, 1000000, 768, 1000, 1000, 5180, 7510},
    MeasuredPass{"H200", PassKind::kInt8Scan, 62423, 384, 1, 10, 28.43, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 62423, 384, 8, 10, 31.48, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 62423, 384, 16, 10, 36.21, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 62423, 384, 32, 10, 41.4, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 62423, 384, 48, 10, 54.15, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 62423, 384, 64, 10, 58.54, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 1000000, 768, 1, 100, 246.6, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 1000000, 768, 8, 100, 255.4, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 1000000, 768, 16, 100, 264.6, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 1000000, 768, 32, 100, 283.6, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 1000000, 768, 48, 100, 411.6, 0},
    MeasuredPass{"H200", PassKind::kInt8Scan, 1000000, 768, 64, 100, 493.9, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 1, 10, 32.31, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 8, 10, 33.6, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 16, 10, 35.95, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 32, 10, 39.33, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 48, 10, 50.42, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 62423, 384, 64, 10, 53.98, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 1000000, 768, 1, 100, 436.7, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 1000000, 768, 8, 100, 442.1, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 1000000, 768, 16, 100, 453, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 1000000, 768, 32, 100, 451.5, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 1000000, 768, 48, 100, 487.3, 0},
    MeasuredPass{"H200", PassKind::kRingScan, 1000000, 768, 64, 100, 498.1, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 62423, 384, 1, 10, 33.92, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 62423, 384, 8, 10, 34.88, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 62423, 384, 16, 10, 37.05, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 62423, 384, 32, 10, 40.67, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 62423, 384, 48, 10, 48.56, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 62423, 384, 64, 10, 53.56, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 1000000, 768, 1, 100, 428.4, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 1000000, 768, 8, 100, 433.6, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 1000000, 768, 16, 100, 443.9, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 1000000, 768, 32, 100, 455.4, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 1000000, 768, 48, 100, 482, 0},
    MeasuredPass{"H200", PassKind::kRegisterScan, 1000000, 768, 64, 100, 505.1, 0},
    MeasuredPass{"H200", PassKind::kGemm, 62423, 384, 65, 10, 66.05, 0},
    MeasuredPass{"H200", PassKind::kGemm, 62423, 384, 100, 10, 70.43, 0},
    MeasuredPass{"H200", PassKind::kGemm, 62423, 384, 128, 10, 73.39, 0},
    MeasuredPass{"H200", PassKind::kGemm, 62423, 384, 256, 10, 99.61, 0},
    MeasuredPass{"H200", PassKind::kGemm, 62423, 384, 1000, 10, 200.7, 0},
    MeasuredPass{"H200", PassKind::kGemm, 1000000, 768, 65, 100, 659.8, 0},
    MeasuredPass{"H200", PassKind::kGemm, 1000000, 768, 100, 100, 693.4, 0},
    MeasuredPass{"H200", PassKind::kGemm, 1000000, 768, 128, 100, 717.8, 0},
    MeasuredPass{"H200", PassKind::kGemm, 1000000, 768, 256, 100, 979.6, 0},
    MeasuredPass{"H200", PassKind::kGemm, 1000000, 768, 1000, 100, 3386, 0},
};

// kCallShares: seconds of a call besides the engine's, by queries per call. kAtOncePerS: queries
// per second with 64 calls in flight. Measured by `simile bench` with 62,423 x 384 vectors, k 10,
// on the H100's host (Xeon with AMX, 16 processors), client and server on one machine. Calls took
// 137, 252, 1,432 and 11,256 us; the shares are these less the engine's times in the same run.
constexpr std::array kCallShares{std::pair{1.0, 97e-6}, std::pair{10.0, 189e-6},
                                 std::pair{100.0, 1'273e-6}, std::pair{1'000.0, 10'481e-6}};
constexpr double kAtOncePerS = 29'580;
// Queries per second of calls made one at a time, by queries per call, for the measured collection
// itself.
constexpr std::array kServed{std::pair{1U, 7'296.0}, std::pair{10U, 39'693.0},
                             std::pair{100U, 69'809.0}, std::pair{1'000U, 88'842.0}};

struct Point {
  double at;
  double value;
};

// Interpolates between the points around `at`, with both scales logarithmic. Beyond the ends
// returns the nearest point's value.
double Between(const std::vector<Point>& points, double at) {
  const auto after = std::ranges::lower_bound(points, at, {}, &Point::at);
  if (after == points.begin()) return points.front().value;
  if (after == points.end()) return points.back().value;
  const Point &low = *std::prev(after), &high = *after;
  const double part = std::log(at / low.at) / std::log(high.at / low.at);
  return low.value * std::pow(high.value / low.value, part);
}

// Times of one collection on one card by one scan strategy, and by matrix products for batches too
// large for a scan.
class MeasuredSeries {
 public:
  MeasuredSeries(std::span<const MeasuredPass> measured, std::string_view card, PassKind kind,
                 std::uint32_t rows) {
    for (const MeasuredPass& pass : measured) {
      if (pass.card != card || pass.rows != rows) continue;
      if (pass.kind == kind || pass.kind == PassKind::kGemm) passes_.push_back(pass);
    }
    std::ranges::sort(passes_, [](const MeasuredPass& a, const MeasuredPass& b) {
      return std::pair(a.batch, a.k) < std::pair(b.batch, b.k);
    });
  }

  bool has(PassKind kind) const {
    return std::ranges::any_of(passes_,
                               [&](const MeasuredPass& pass) { return pass.kind == kind; });
  }
  std::uint32_t dim() const { return passes_.front().dim; }
  std::uint32_t batch_min() const { return passes_.front().batch; }
  std::uint32_t batch_max() const { return passes_.back().batch; }
  bool HasHits(std::uint32_t k) const {
    const auto [least, most] = std::ranges::minmax(passes_, {}, &MeasuredPass::k);
    return least.k <= k && k <= most.k;
  }
  const MeasuredPass* Find(std::uint32_t batch, std::uint32_t k) const {
    const auto found = std::ranges::find_if(
        passes_, [&](const MeasuredPass& pass) { return pass.batch == batch && pass.k == k; });
    return found == passes_.end() ? nullptr : &*found;
  }

  // Microseconds of a batch, interpolated between the measured batches.
  template <class Us>
  double At(std::uint32_t batch, std::uint32_t k, Us us) const {
    std::vector<Point> by_batch;
    for (auto at = passes_.begin(); at != passes_.end();) {
      std::vector<Point> by_k;
      const std::uint32_t of_batch = at->batch;
      for (; at != passes_.end() && at->batch == of_batch; ++at) {
        by_k.push_back({static_cast<double>(at->k), us(*at)});
      }
      by_batch.push_back({static_cast<double>(of_batch), Between(by_k, k)});
    }
    return Between(by_batch, batch);
  }

 private:
  std::vector<MeasuredPass> passes_;
};

double DeviceUs(const MeasuredPass& pass) { return pass.device_us; }
double HostShareUs(const MeasuredPass& pass) { return pass.host_us - pass.device_us; }

// Rows of the two measured collections.
constexpr std::uint32_t kFewRows = 62'423, kManyRows = 1'000'000;

// The times of both collections on one card.
struct MeasuredCard {
  std::string_view card;
  MeasuredSeries few;
  MeasuredSeries many;
};

std::vector<std::string_view> ListCards(std::span<const MeasuredPass> measured) {
  std::vector<std::string_view> cards;
  for (const MeasuredPass& pass : measured) {
    if (std::ranges::find(cards, pass.card) == cards.end()) cards.push_back(pass.card);
  }
  return cards;
}

// The measured card to scale from; it must have this kind of pass. Prefers a card whose measured k
// enclose or equal the batch's k, then the batch's own card.
std::optional<MeasuredCard> CardToScale(std::span<const MeasuredPass> measured, PassKind kind,
                                        const DeviceBatch& batch) {
  std::optional<MeasuredCard> best;
  int best_worth = -1;
  for (const std::string_view card : ListCards(measured)) {
    MeasuredCard each{card, MeasuredSeries(measured, card, kind, kFewRows),
                      MeasuredSeries(measured, card, kind, kManyRows)};
    if (!each.few.has(kind) || !each.many.has(kind)) continue;
    const bool has_hits = each.few.HasHits(batch.k) || each.many.HasHits(batch.k);
    const int worth = (has_hits ? 2 : 0) + (card == batch.card ? 1 : 0);
    if (worth <= best_worth) continue;
    best_worth = worth;
    best = std::move(each);
  }
  return best;
}

PlannedCollection MeasuredCollection(const MeasuredSeries& series, std::uint32_t rows) {
  PlannedCollection collection;
  collection.rows = rows;
  collection.dim = series.dim();
  return collection;
}

// The floor of a measured collection on the measured card, with the strategy that answered it
// there.
double FloorThere(const MeasuredCard& card, const MeasuredSeries& series, std::uint32_t rows,
                  PassKind kind, std::uint32_t batch, std::uint32_t k,
                  const backend::WorkspaceSize& workspace) {
  const PlannedCollection collection = MeasuredCollection(series, rows);
  DeviceSpeed speed = FindCardFacts(card.card)->speed;
  if (kind == PassKind::kRegisterScan) speed.capability = backend::kTensorScanMin;
  const backend::SegmentSize size{static_cast<unsigned>(rows),
                                  static_cast<unsigned>(PaddedDim(collection.dim))};
  const auto resident = backend::PlanResident(size, true, kind == PassKind::kInt8Scan);
  return FloorOnDevice(collection, batch, k, workspace, speed, resident).seconds;
}

// The time of one pass. Computes the floors on the measured card for this batch's size, even if
// only other sizes were measured.
double OnePass(const MeasuredCard& card, PassKind kind, const DeviceBatch& batch,
               double floor_here) {
  const auto floor_there = [&](const MeasuredSeries& series, std::uint32_t rows,
                               std::uint32_t queries) {
    return FloorThere(card, series, rows, kind, queries, batch.k, batch.workspace);
  };
  const auto seconds = [&](const MeasuredSeries& series, std::uint32_t rows) {
    const std::uint32_t known = std::clamp(batch.batch, series.batch_min(), series.batch_max());
    return series.At(known, batch.k, DeviceUs) * 1e-6 * floor_there(series, rows, batch.batch) /
           floor_there(series, rows, known);
  };
  const double few = seconds(card.few, kFewRows), many = seconds(card.many, kManyRows);
  const double few_floor = floor_there(card.few, kFewRows, batch.batch);
  const double many_floor = floor_there(card.many, kManyRows, batch.batch);
  const double slope = (many - few) / (many_floor - few_floor);
  // A steep line gives a negative time at zero rows, so takes at least the floor.
  return std::max(few + slope * (floor_here - few_floor), floor_here);
}

// The host's share and the served rates belong to this card, so the table must contain it.
static_assert(std::ranges::any_of(kPasses, [](const MeasuredPass& pass) {
  return pass.card == kH100 && pass.kind == PassKind::kInt8Scan;
}));

// The host's time for a batch. It grows with queries, hits and dimensions, not with rows.
double HostShare(const DeviceBatch& batch, std::uint32_t queries) {
  const MeasuredSeries few(kPasses, kH100, PassKind::kInt8Scan, kFewRows);
  const MeasuredSeries many(kPasses, kH100, PassKind::kInt8Scan, kManyRows);
  const double narrow = few.At(queries, batch.k, HostShareUs);
  const double wide = many.At(queries, batch.k, HostShareUs);
  const double dim = std::clamp(batch.collection.dim, few.dim(), many.dim());
  const double us = narrow + (wide - narrow) * (dim - few.dim()) / (many.dim() - few.dim());
  return us * 1e-6 * std::max(1.0, static_cast<double>(queries) / few.batch_max());
}

bool IsMeasuredCollection(const DeviceBatch& batch) {
  return (batch.collection.rows == kFewRows && batch.collection.dim == 384) ||
         (batch.collection.rows == kManyRows && batch.collection.dim == 768);
}

bool WasServed(const DeviceBatch* batch) {
  return batch != nullptr && batch->card == kH100 && batch->k == kServedHits &&
         batch->collection.rows == kFewRows && batch->collection.dim == 384 &&
         batch->resident.int8_rows > 0;
}

double CallShare(std::uint32_t queries) {
  std::vector<Point> points;
  for (const auto& [at, seconds] : kCallShares) points.push_back({at, seconds});
  return Between(points, queries) * std::max(1.0, queries / points.back().at);
}

}  // namespace

std::string_view BasisText(Basis basis) {
  switch (basis) {
    case Basis::kMeasured:
      return "measured";
    case Basis::kScaled:
      return "scaled";
    case Basis::kFloor:
      break;
  }
  return "floor";
}

std::span<const MeasuredPass> MeasuredPasses() { return kPasses; }

std::optional<EngineTime> PassTimeOnDevice(const DeviceBatch& batch,
                                           std::span<const MeasuredPass> measured) {
  const PassKind kind =
      ChoosePassKind(batch.collection, batch.batch, batch.speed.capability, batch.resident);
  // For batches too large for a scan, the kind of scan only selects the series.
  const PassKind series =
      kind == PassKind::kGemm ? ChoosePassKind(batch.collection, 1, 0, batch.resident) : kind;
  const std::optional<MeasuredCard> card = CardToScale(measured, series, batch);
  if (!card) return std::nullopt;
  const auto together = std::max(backend::PassQueriesMax(batch.workspace, batch.k), 1U);
  const std::uint32_t passes = (batch.batch + together - 1) / together;
  const SpeedFloor floor = FloorOnDevice(batch.collection, batch.batch, batch.k, batch.workspace,
                                         batch.speed, batch.resident);
  DeviceBatch pass = batch;
  pass.batch = std::min(batch.batch, together);
  EngineTime time{passes * OnePass(*card, series, pass, floor.seconds / passes), Basis::kScaled,
                  card->card};
  if (card->card != batch.card || !IsMeasuredCollection(batch)) return time;
  const MeasuredSeries& same = batch.collection.rows == kFewRows ? card->few : card->many;
  if (const MeasuredPass* found = same.Find(batch.batch, batch.k)) {
    time = {found->device_us * 1e-6, Basis::kMeasured, card->card};
  }
  return time;
}

EngineTime EngineTimeOnDevice(const DeviceBatch& batch) {
  const std::optional<EngineTime> device = PassTimeOnDevice(batch, kPasses);
  if (!device) {
    return {FloorOnDevice(batch.collection, batch.batch, batch.k, batch.workspace, batch.speed,
                          batch.resident)
                .seconds,
            Basis::kFloor, ""};
  }
  EngineTime time = *device;
  if (device->basis == Basis::kMeasured) {
    for (const MeasuredPass& pass : kPasses) {
      if (pass.card == batch.card && pass.rows == batch.collection.rows &&
          pass.batch == batch.batch && pass.k == batch.k && pass.host_us > 0) {
        time.seconds = pass.host_us * 1e-6;
        return time;
      }
    }
    time.basis = Basis::kScaled;  // the host's share comes from another card
  }
  time.seconds += HostShare(batch, batch.batch);
  return time;
}

ServedTime ServedCalls(const DeviceBatch* on_device, std::uint32_t queries,
                       const EngineTime& engine) {
  if (WasServed(on_device)) {
    for (const auto& [of, per_s] : kServed) {
      if (of == queries) return {queries / per_s, per_s, Basis::kMeasured};
    }
  }
  const double seconds = engine.seconds + CallShare(queries);
  return {seconds, queries / seconds,
          engine.basis == Basis::kFloor ? Basis::kFloor : Basis::kScaled};
}

ServedTime ServedAtOnce(const DeviceBatch* on_device, const EngineTime& engine) {
  if (WasServed(on_device)) return {0, kAtOncePerS, Basis::kMeasured};
  const double engine_per_s = kCallsAtOnce / engine.seconds;
  // The CPU engine shares the processors with the server; a card works in parallel.
  const double per_s = on_device == nullptr ? 1 / (1 / kAtOncePerS + 1 / engine_per_s)
                                            : std::min(kAtOncePerS, engine_per_s);
  return {0, per_s, engine.basis == Basis::kFloor ? Basis::kFloor : Basis::kScaled};
}

}  // namespace simile::cli
