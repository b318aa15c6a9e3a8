#include "backend/cuda/pass_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "certificate/speculative_rank.h"

namespace simile::backend::cuda {
namespace {

using kernels::kSampleKeysMax;
using kernels::kScanGroupsMax;
using kernels::kScanQueriesMax;
using kernels::kScanTileRows;
using kernels::kTileGranule;

// A block finishes a query alone as long as what it re-scores is short.
constexpr unsigned kHitsOfOneBlock = 128;
// Of the groups of a sample a gate may take so many: beyond, maxima collide too often.
constexpr double kRankShareMax = 0.9;
constexpr unsigned kGroupOfLoad = 8;  // rows of one 16-byte load of scores
constexpr double kRankShareOfLoads = 0.25;

// Answers come in few sizes, so that few graphs are captured. People ask for round numbers.
unsigned RoundedHits(unsigned hits) {
  constexpr std::array<unsigned, 12> kSizes{10,  16,  32,    64,    100,   128,
                                            256, 512, 1'000, 2'048, 4'096, 10'000};
  const auto size = std::lower_bound(kSizes.begin(), kSizes.end(), hits);
  return size != kSizes.end() ? *size : std::bit_ceil(hits);
}

// Up to 64 powers of two, beyond them eighths of one.
unsigned RoundedQueries(unsigned queries) {
  if (queries <= kScanQueriesMax) return std::bit_ceil(queries);
  const unsigned step = std::bit_floor(queries - 1) / 8;
  return (queries + step - 1) / step * step;
}

// By what factor a margin below the gate lets more rows through, where scores are spread as those
// of random directions, normally with a deviation of 1 / sqrt(dimensions): the density at the gate,
// z deviations out, grows by exp(z * margin * sqrt(dimensions)).
double FactorOfMargin(double margin, const SegmentSize& segment, const PassDemand& demand) {
  constexpr double kLeast = 1.25, kMost = 16;
  const double share = static_cast<double>(segment.row_count) / std::max(demand.reach_max, 1U);
  const double deviations = std::sqrt(2 * std::log(std::max(share, 1.0)));
  return std::clamp(std::exp(deviations * margin * std::sqrt(segment.stride)), kLeast, kMost);
}

// More hits than the expected ones come with a chance of one in a million or less.
unsigned HitRoom(double rank, double expected, const PassDemand& demand, unsigned row_count) {
  const double spread = 1 + 6.5 / std::sqrt(rank);
  const double room = std::ldexp(spread * expected + 128, static_cast<int>(demand.growth));
  const double needed = std::max<double>(room, demand.reach_max + 64);
  const auto rows = static_cast<unsigned>(std::min<double>(needed, row_count));
  // In eighths of a power of two: few sizes here, too.
  const unsigned step = std::max(std::bit_floor(std::max(rows, 1U)) / 8, 32U);
  return (rows + step - 1) / step * step;
}

// As many queries as there is room for.
unsigned SlotsThatFit(const WorkspaceSize& workspace, const PassPlan& plan, unsigned queries) {
  const std::size_t by_hits = workspace.hits_max / plan.capacity;
  const std::size_t by_answers = workspace.answers_max / plan.best_stride;
  std::size_t fit = std::min<std::size_t>({by_hits, by_answers, workspace.queries_max, queries});
  if (plan.road == PassPlan::Road::kGemm) {
    fit = std::min(fit, workspace.tile_bytes / (kTileGranule * sizeof(__half)));
  }
  if (fit >= queries) return queries;
  // Rounding up again must not overrun it.
  return fit <= kScanQueriesMax ? std::bit_floor(static_cast<unsigned>(fit))
                                : static_cast<unsigned>(fit) / 64 * 64;
}

struct Sample {
  unsigned groups = 0;
  double hits = 0;  // expected
};

// The cheapest sample: its rows are read twice, and every hit of every query costs a little.
// Seconds as on an H200, whose ratio of the two is what matters.
Sample CheapestSample(const SegmentSize& segment, const PassDemand& demand) {
  constexpr double kBytesPerSecond = 4.3e12;
  constexpr double kSecondsPerHit = 1e-9;
  Sample best;
  double best_time = INFINITY;
  const unsigned tiles = (segment.row_count + kScanTileRows - 1) / kScanTileRows;
  for (unsigned groups = 1; groups <= std::min(kScanGroupsMax, tiles); groups *= 2) {
    const double rows = static_cast<double>(groups) * kScanTileRows;
    const auto rank = static_cast<double>(
        certificate::SpeculativeRank(demand.reach_max, rows / segment.row_count));
    if (rank > kRankShareMax * groups) continue;
    const double hits = ExpectedHits(rank, groups, kScanTileRows, segment.row_count);
    const double time =
        rows * segment.stride * 2 / kBytesPerSecond + demand.queries * hits * kSecondsPerHit;
    if (time >= best_time) continue;
    best_time = time;
    best = {groups, hits};
  }
  return best;
}

std::optional<PassPlan> PlanRowScan(const CardTraits& card, const WorkspaceSize& workspace,
                                    const SegmentSize& segment, const PassDemand& demand) {
  const Sample sample = CheapestSample(segment, demand);
  if (sample.groups == 0) return std::nullopt;
  PassPlan plan;
  plan.road = PassPlan::Road::kRowScan;
  plan.sample_groups = sample.groups;
  plan.sample_share =
      std::min(1.0, static_cast<double>(sample.groups) * kScanTileRows / segment.row_count);
  plan.capacity = HitRoom(plan.RankOf(demand.reach_max),
                          sample.hits * FactorOfMargin(demand.scan_margin, segment, demand), demand,
                          segment.row_count);
  plan.best_stride = RoundedHits(demand.hits_max);
  plan.slots = SlotsThatFit(workspace, plan, RoundedQueries(demand.queries));
  if (plan.slots == 0) return std::nullopt;
  plan.shape = kernels::ShapeRowScan(segment.stride, plan.slots, card.shared_bytes_max,
                                     card.copies_asynchronously());
  if (plan.shape.queries < plan.slots) return std::nullopt;
  plan.finishes_by_block = demand.hits_max <= kHitsOfOneBlock;
  return plan;
}

// Rows of a tile: what fits, in whole waves of the product's blocks where there is more than one.
unsigned TileRows(const CardTraits& card, const WorkspaceSize& workspace,
                  const SegmentSize& segment, unsigned slots) {
  constexpr unsigned kBlockQueries = 256;
  const std::size_t fit =
      std::max<std::size_t>(workspace.tile_bytes / (sizeof(__half) * slots * kTileGranule), 1);
  const std::size_t columns = (slots + kBlockQueries - 1) / kBlockQueries;
  std::size_t granules = fit;
  if (fit * columns > card.multiprocessors) {
    const std::size_t waves = fit * columns / card.multiprocessors;
    granules = std::max<std::size_t>(waves * card.multiprocessors / columns, 1);
  }
  const std::size_t all = (segment.row_count + kTileGranule - 1) / kTileGranule;
  return static_cast<unsigned>(std::min(granules, all)) * kTileGranule;
}

// The sample of the first tile, and the hits to expect. False where no rank is good.
bool SampleTile(const SegmentSize& segment, const PassDemand& demand, PassPlan& plan,
                double& hits) {
  const unsigned columns = std::min(plan.tile_rows, segment.row_count);
  for (const unsigned group : {kGroupOfLoad, 1U}) {
    plan.sample_group = group;
    plan.sample_rows = std::min(columns, kSampleKeysMax * group);
    plan.sample_share = static_cast<double>(plan.sample_rows) / segment.row_count;
    const double keys = static_cast<double>(plan.sample_rows) / group;
    const double rank = plan.RankOf(demand.reach_max);
    if (rank > (group > 1 ? kRankShareOfLoads : kRankShareMax) * keys) continue;
    hits = ExpectedHits(rank, keys, group, segment.row_count);
    return true;
  }
  return false;
}

// As many queries as have room for their hits. Fewer queries make longer tiles, which make a larger
// sample and fewer hits: so each number is tried with the room that it needs itself.
std::optional<PassPlan> PlanGemm(const CardTraits& card, const WorkspaceSize& workspace,
                                 const SegmentSize& segment, const PassDemand& demand) {
  PassPlan plan;
  plan.road = PassPlan::Road::kGemm;
  plan.finishes_by_block = demand.hits_max <= kHitsOfOneBlock;
  plan.best_stride = RoundedHits(demand.hits_max);
  plan.capacity = demand.reach_max;  // at least
  unsigned slots = SlotsThatFit(workspace, plan, RoundedQueries(demand.queries));
  while (slots != 0) {
    plan.tile_rows = TileRows(card, workspace, segment, slots);
    double hits = 0;
    if (!SampleTile(segment, demand, plan, hits)) return std::nullopt;
    plan.capacity = HitRoom(plan.RankOf(demand.reach_max),
                            hits * FactorOfMargin(demand.gemm_margin, segment, demand), demand,
                            segment.row_count);
    plan.slots = slots;
    if (SlotsThatFit(workspace, plan, slots) == slots) return plan;
    slots = slots > kScanQueriesMax ? std::min(RoundedQueries(slots - slots / 8), slots - 8)
                                    : slots / 2;
  }
  return std::nullopt;
}

}  // namespace

unsigned PassPlan::RankOf(std::size_t reach) const {
  return static_cast<unsigned>(certificate::SpeculativeRank(reach, sample_share));
}

double ExpectedHits(double rank, double groups, double group_rows, double row_count) {
  if (rank >= groups || group_rows >= row_count) return row_count;
  return std::min(row_count, std::log1p(-rank / groups) / std::log1p(-group_rows / row_count));
}

std::optional<PassPlan> PlanPass(const CardTraits& card, const GpuTuning& tuning,
                                 const WorkspaceSize& workspace, const SegmentSize& segment,
                                 const PassDemand& demand) {
  if (demand.queries <= std::min(tuning.scan_queries_max, kScanQueriesMax)) {
    if (auto plan = PlanRowScan(card, workspace, segment, demand)) return plan;
  }
  return PlanGemm(card, workspace, segment, demand);
}

}  // namespace simile::backend::cuda
