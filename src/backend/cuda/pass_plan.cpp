#include "backend/cuda/pass_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "certificate/top_k.h"
#include "kernels/answers.h"
#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

using kernels::kHitsOfOneBlock;
using kernels::kSampleKeysMax;
using kernels::kScanGroupsMax;
using kernels::kScanTileRows;
using kernels::kTileGranule;

// The longest answers that are exchanged through mapped memory. Longer answers were not measured.
constexpr unsigned kMappedHitsMax = 128;
// The highest rank of a gate, as a share of the sample's groups. Above it, many of the best rows
// share a group, so the gate falls and the hits multiply. Estimated from ExpectedHits.
constexpr double kRankShareMax = 0.9;
constexpr unsigned kGroupOfLoad = 8;  // rows of one 16-byte load of scores
constexpr double kRankShareOfLoads =
    0.25;  // the same share for groups of a load, estimated the same way

// Rounds up to few sizes, so that few graphs are captured. Requested k are usually round numbers.
unsigned RoundedHits(unsigned hits) {
  constexpr std::array<unsigned, 12> kSizes{10,  16,  32,    64,    100,   128,
                                            256, 512, 1'000, 2'048, 4'096, kHitsMax};
  const auto size = std::lower_bound(kSizes.begin(), kSizes.end(), hits);
  return size != kSizes.end() ? *size : std::bit_ceil(hits);
}

constexpr unsigned kPowersMax = 64;
// Rounds up: to powers of two up to kPowersMax, beyond that to eighths of a power of two.
unsigned RoundedQueries(unsigned queries) {
  if (queries <= kPowersMax) return std::bit_ceil(queries);
  const unsigned step = std::bit_floor(queries - 1) / 8;
  return (queries + step - 1) / step * step;
}

// The factor by which a margin below the gate multiplies the hits. Scores of random directions are
// normal with a deviation of 1 / sqrt(dimensions), so the density at the gate, z deviations out,
// grows by exp(z * margin * sqrt(dimensions)).
double FactorOfMargin(double margin, const SegmentSize& segment, const PassDemand& demand) {
  constexpr double kLeast = 1.25, kMost = 16;
  const double share = static_cast<double>(segment.row_count) / std::max(demand.reach_max, 1U);
  const double deviations = std::sqrt(2 * std::log(std::max(share, 1.0)));
  return std::clamp(std::exp(deviations * margin * std::sqrt(segment.stride)), kLeast, kMost);
}

// The capacity for hits per query; a query has more with a probability of at most 1e-6.
unsigned HitCapacity(double rank, double expected, const PassDemand& demand, unsigned row_count) {
  // The relative deviation of the number of hits is about 1 / sqrt(rank).
  const double spread = 1 + 6.5 / std::sqrt(rank);
  const double grown = std::ldexp(spread * expected + 128, static_cast<int>(demand.growth));
  const double needed = std::max<double>(grown, demand.reach_max + gpu_sizes::kSpareHits);
  const auto rows = static_cast<unsigned>(std::min<double>(needed, row_count));
  // Rounded to eighths of a power of two, so that few graphs are captured.
  const unsigned step = std::max(std::bit_floor(std::max(rows, 1U)) / 8, 32U);
  return (rows + step - 1) / step * step;
}

// The number of the queries that the workspace holds.
unsigned SlotsThatFit(const WorkspaceSize& workspace, const PassPlan& plan, unsigned queries) {
  const std::size_t by_hits = workspace.hits_max / plan.capacity;
  const std::size_t by_answers = workspace.answers_max / plan.best_stride;
  std::size_t fit = std::min<std::size_t>({by_hits, by_answers, workspace.queries_max, queries});
  if (plan.strategy() == PassStrategy::kGemm) {
    fit = std::min(fit, workspace.tile_bytes / (kTileGranule * sizeof(__half)));
  }
  if (fit >= queries) return queries;
  // Rounded down, because the caller rounds up.
  return fit <= kPowersMax ? std::bit_floor(static_cast<unsigned>(fit))
                           : static_cast<unsigned>(fit) / 64 * 64;
}

bool LendsAnswers(const GpuTuning& tuning, const PassPlan& plan) {
  return std::size_t{plan.slots} * plan.best_stride >= tuning.lent_hits_min;
}

struct Sample {
  unsigned groups = 0;
  double hits = 0;  // expected
};

constexpr double kSecondsPerHit = 1e-9;  // 0.5 to 6 ns on an H200

// The cheapest sample. The rows of a sample are read twice, and each hit of each query costs time;
// only the ratio of these two costs matters.
Sample CheapestSample(const SegmentSize& segment, const PassDemand& demand, double row_bytes) {
  constexpr double kBytesPerSecond = 4.48e12;  // a plain read on an H200
  Sample best;
  double best_time = INFINITY;
  const unsigned tiles = (segment.row_count + kScanTileRows - 1) / kScanTileRows;
  for (unsigned groups = 1; groups <= std::min(kScanGroupsMax, tiles); groups *= 2) {
    const double rows = static_cast<double>(groups) * kScanTileRows;
    const auto rank = static_cast<double>(
        certificate::SpeculativeRank(demand.reach_max, rows / segment.row_count));
    if (rank > kRankShareMax * groups) continue;
    const double hits = ExpectedHits(rank, groups, kScanTileRows, segment.row_count);
    const double time = rows * row_bytes / kBytesPerSecond + demand.queries * hits * kSecondsPerHit;
    if (time >= best_time) continue;
    best_time = time;
    best = {groups, hits};
  }
  return best;
}

// Adds a second gate, which the hits of the first rows set, if it saves enough hits.
//   factor  by which the margin multiplies the hits of either gate
//   hits    expected for a query; lowered by the second gate
void AddSecondGate(const GpuTuning& tuning, const PassChoice* choice, const SegmentSize& segment,
                   const PassDemand& demand, double factor, PassPlan& plan, double& hits) {
  // The estimated hits of a batch that the second gate must save. By these estimates a batch of 64
  // queries saves 32,000 fp16 hits or 80,000 int8 hits (a million rows of 768 dimensions, k 100),
  // and a batch of 32 saves half. On an H200 the second gate saves 80 us (fp16) and 125 us (int8)
  // for 64 queries, and costs 7 to 9 us for 32.
  const double of_rules = plan.strategy() == PassStrategy::kInt8Scan ? 56'000 : 24'000;
  const double saved_min = choice != nullptr ? 0 : of_rules;
  const auto gated =
      WithSecondGate(plan, segment.row_count,
                     choice != nullptr ? choice->second_gate_share : tuning.second_gate_share);
  if (!gated) return;
  const double share = gated->second_share;
  const auto rank = static_cast<double>(certificate::SpeculativeRank(demand.reach_max, share));
  if (rank > kRankShareMax * kScanGroupsMax) return;
  const double group_rows = share * segment.row_count / kScanGroupsMax;
  const double behind = factor * ExpectedHits(rank, kScanGroupsMax, group_rows, segment.row_count);
  const double fewer = share * hits + (1 - share) * behind;
  if (demand.queries * (hits - fewer) < saved_min) return;
  plan = *gated;
  hits = fewer;
}

// The sample of kept scores: all rows, in groups of half a block.
Sample WholeSample(const CardTraits& card, const SegmentSize& segment, const PassDemand& demand) {
  const unsigned groups = 2 * card.multiprocessors;
  const double rank = demand.reach_max;
  if (groups > kScanGroupsMax || rank > kRankShareMax * groups) return {};
  const double group_rows = static_cast<double>(segment.row_count) / groups;
  return {groups, ExpectedHits(rank, groups, group_rows, segment.row_count)};
}

// The demand's choice if it is for this variant, else null.
const PassChoice* ChoiceFor(const KernelVariant& variant, const PassDemand& demand) {
  return demand.choice != nullptr && demand.choice->variant == &variant ? demand.choice : nullptr;
}

// The choice's form of finish, or the rules' form when the batch does not admit the choice.
// REQUIRES: the plan's slots and answers are set.
FinishForm ChooseFinish(const PassChoice* choice, const PassDemand& demand, const PassPlan& plan,
                        unsigned row_count) {
  const FinishForm chosen = choice != nullptr ? choice->finish : FinishForm::kOneLaunch;
  if (chosen == FinishForm::kSteps) return chosen;
  // The order of the rows can help when queries read the same rows.
  const bool shares_rows = std::size_t{plan.slots} * plan.rows_rescored() > row_count;
  if (chosen == FinishForm::kStepsInRowOrder && shares_rows) return chosen;
  return demand.hits_max <= kHitsOfOneBlock ? FinishForm::kOneLaunch : FinishForm::kSteps;
}

// Whether a warp has no more tiles than it can keep the scores of.
bool FitsKept(const kernels::RowScanShape& shape, const CardTraits& card,
              const SegmentSize& segment) {
  const std::size_t warps = std::size_t{card.multiprocessors} * shape.warps;
  return segment.row_count <= warps * kernels::kTilesKept * kScanTileRows;
}

// The groups of kept scores that have a tile. A block has two groups, and the first groups of all
// blocks have tiles before any second group.
unsigned GroupsWithRows(const kernels::RowScanShape& shape, const CardTraits& card,
                        const SegmentSize& segment) {
  const unsigned tiles = (segment.row_count + kScanTileRows - 1) / kScanTileRows;
  const unsigned of_first_groups = card.multiprocessors * (shape.warps / 2);
  const unsigned in_second_groups = tiles - std::min(tiles, of_first_groups);
  return std::min(tiles, card.multiprocessors) + std::min(in_second_groups, card.multiprocessors);
}

std::optional<PassPlan> PlanRowScan(const KernelVariant& variant, const CardTraits& card,
                                    const GpuTuning& tuning, const WorkspaceSize& workspace,
                                    const SegmentSize& segment, const PassDemand& demand) {
  const bool keeps_scores = variant.form == kernels::ScanForm::kKept;
  const bool is_int8 = variant.strategy == PassStrategy::kInt8Scan;
  const PassChoice* const choice = ChoiceFor(variant, demand);
  const double row_bytes =
      is_int8 ? static_cast<double>(Int8Stride(segment.stride) + gpu_sizes::kInt8Row)
              : 2.0 * segment.stride;
  const Sample sample = keeps_scores ? WholeSample(card, segment, demand)
                                     : CheapestSample(segment, demand, row_bytes);
  if (sample.groups == 0) return std::nullopt;
  const double margin = is_int8 ? demand.int8_margin : demand.scan_margin;
  PassPlan plan;
  plan.variant = &variant;
  plan.sample_groups = sample.groups;
  plan.sample_share =
      keeps_scores
          ? 1
          : std::min(1.0, static_cast<double>(sample.groups) * kScanTileRows / segment.row_count);
  const double factor = FactorOfMargin(margin, segment, demand);
  double hits = factor * sample.hits;
  if (!keeps_scores) AddSecondGate(tuning, choice, segment, demand, factor, plan, hits);
  plan.capacity =
      HitCapacity(plan.FindRanks(demand.reach_max).first, hits, demand, segment.row_count);
  plan.best_stride = RoundedHits(demand.hits_max);
  plan.slots = SlotsThatFit(workspace, plan, RoundedQueries(demand.queries));
  if (plan.slots == 0) return std::nullopt;
  plan.shape = variant.ShapeFor(segment.stride, plan.slots, card.shared_bytes_max);
  if (plan.shape.queries < plan.slots) return std::nullopt;
  if (keeps_scores &&
      (!FitsKept(plan.shape, card, segment) ||
       demand.reach_max > kRankShareMax * GroupsWithRows(plan.shape, card, segment))) {
    return std::nullopt;
  }
  plan.finish = ChooseFinish(choice, demand, plan, segment.row_count);
  plan.is_mapped = demand.hits_max <= kMappedHitsMax && plan.slots <= tuning.mapped_queries_max &&
                   (choice == nullptr || choice->is_mapped);
  plan.lends_answers = LendsAnswers(tuning, plan);
  return plan;
}

// The rows of the longest tile: whole granules.
unsigned TileRowsMax(const WorkspaceSize& workspace, const SegmentSize& segment, unsigned slots) {
  const std::size_t fit =
      std::max<std::size_t>(workspace.tile_bytes / (sizeof(__half) * slots * kTileGranule), 1);
  const std::size_t all = (segment.row_count + kTileGranule - 1) / kTileGranule;
  return static_cast<unsigned>(std::min(fit, all)) * kTileGranule;
}

// The rows of a tile: whole waves of the product's blocks, with scores that fit the workspace and a
// part of the L2. Waves are added until a tile holds half of the rows, as long as the rest is worth
// a tile. So one tile's product runs while the other's scores are selected. A tile has at least one
// wave if the workspace allows it, because idle multiprocessors cost more than scores outside the
// L2. On an H200 at 100 queries two tiles of 62,423 x 384 take 70 us, four 85 and one 103; a
// million rows of 768 take
// 557 us by tiles of four waves, 622 by two and 695 by one.
unsigned TileRows(const CardTraits& card, const WorkspaceSize& workspace,
                  const SegmentSize& segment, unsigned slots) {
  constexpr unsigned kBlockQueries = 256;  // the longer side of cuBLAS's blocks
  constexpr std::size_t kWavesMax = 4;     // longer tiles were not measured
  constexpr double kShareOfL2 = 0.35;      // 17 MiB of an H100's 50: two waves at 1,000 queries
  const std::size_t granule_bytes = std::size_t{kTileGranule} * sizeof(__half) * slots;
  const std::size_t columns = (slots + kBlockQueries - 1) / kBlockQueries;
  const auto of_waves = [&](std::size_t waves) {
    return std::max<std::size_t>(waves * card.multiprocessors / columns, 1);
  };
  const std::size_t all = (segment.row_count + kTileGranule - 1) / kTileGranule;
  const auto in_l2 =
      static_cast<std::size_t>(kShareOfL2 * static_cast<double>(card.l2_bytes)) / granule_bytes;
  const std::size_t longest = TileRowsMax(workspace, segment, slots) / kTileGranule;
  const auto fits = [&](std::size_t waves) {
    const std::size_t granules = of_waves(waves);
    return waves <= kWavesMax && granules <= std::min(in_l2, longest) &&
           granules + of_waves(1) / 2 <= all;
  };
  std::size_t waves = 1;
  while (2 * of_waves(waves) < all && fits(waves + 1)) ++waves;
  return static_cast<unsigned>(std::min(of_waves(waves), longest)) * kTileGranule;
}

// The scaled rows of a tile: whole granules, at least one.
unsigned Times(double factor, unsigned tile_rows, unsigned longest) {
  const auto rows = static_cast<unsigned>(factor * tile_rows) / kTileGranule * kTileGranule;
  return std::clamp(rows, kTileGranule, longest);
}

// Sets the sample of the first tile and the expected hits. False when no rank is low enough.
bool SampleTile(const SegmentSize& segment, const PassDemand& demand, PassPlan& plan,
                double& hits) {
  const unsigned columns = std::min(plan.tile_rows, segment.row_count);
  for (const unsigned group : {kGroupOfLoad, 1U}) {
    plan.sample_group = group;
    plan.sample_rows = std::min(columns, kSampleKeysMax * group);
    plan.sample_share = static_cast<double>(plan.sample_rows) / segment.row_count;
    const double keys = static_cast<double>(plan.sample_rows) / group;
    const double rank = plan.FindRanks(demand.reach_max).first;
    if (rank > (group > 1 ? kRankShareOfLoads : kRankShareMax) * keys) continue;
    hits = ExpectedHits(rank, keys, group, segment.row_count);
    return true;
  }
  return false;
}

// Plans for as many queries as the workspace can hold hits for. Fewer queries make longer tiles and
// a larger sample, so fewer hits for each query. So every number of queries is tried with the
// capacity that it needs.
std::optional<PassPlan> PlanGemm(const KernelVariant& variant, const CardTraits& card,
                                 const GpuTuning& tuning, const WorkspaceSize& workspace,
                                 const SegmentSize& segment, const PassDemand& demand) {
  PassPlan plan;
  const PassChoice* const choice = ChoiceFor(variant, demand);
  plan.variant = &variant;
  plan.best_stride = RoundedHits(demand.hits_max);
  plan.capacity = demand.reach_max;  // a lower bound, replaced below
  unsigned slots = SlotsThatFit(workspace, plan, RoundedQueries(demand.queries));
  while (slots != 0) {
    const unsigned longest = TileRowsMax(workspace, segment, slots);
    plan.tile_rows = tuning.tile_rows != 0 ? std::min(tuning.tile_rows, longest)
                                           : TileRows(card, workspace, segment, slots);
    if (choice != nullptr) plan.tile_rows = Times(choice->tile_factor, plan.tile_rows, longest);
    double hits = 0;
    if (!SampleTile(segment, demand, plan, hits)) return std::nullopt;
    plan.capacity = HitCapacity(plan.FindRanks(demand.reach_max).first,
                                hits * FactorOfMargin(demand.gemm_margin, segment, demand), demand,
                                segment.row_count);
    plan.slots = slots;
    if (SlotsThatFit(workspace, plan, slots) == slots) {
      plan.finish = ChooseFinish(choice, demand, plan, segment.row_count);
      plan.lends_answers = LendsAnswers(tuning, plan);
      return plan;
    }
    slots = slots > kPowersMax ? std::min(RoundedQueries(slots - slots / 8), slots - 8) : slots / 2;
  }
  return std::nullopt;
}

bool Admits(const KernelVariant& variant, const CardTraits& card, const GpuTuning& tuning,
            const SegmentSize& segment, const PassDemand& demand) {
  if (variant.strategy == PassStrategy::kInt8Scan && !demand.int8_rows) return false;
  const unsigned queries_max = IsScan(variant.strategy)
                                   ? std::min(tuning.scan_queries_max, variant.queries_max)
                                   : variant.queries_max;
  return card.code_capability >= variant.code_min && demand.queries <= queries_max &&
         segment.stride <= variant.stride_max && demand.hits_max <= kHitsMax;
}

// A scan of the first queries, as many as one scan holds.
std::optional<PassPlan> PlanPartByScan(const CardTraits& card, const GpuTuning& tuning,
                                       const WorkspaceSize& workspace, const SegmentSize& segment,
                                       PassDemand demand) {
  for (demand.queries = std::min(demand.queries, tuning.scan_queries_max); demand.queries != 0;
       demand.queries /= 2) {
    for (const KernelVariant& variant : KernelVariants()) {
      if (!IsScan(variant.strategy) || variant.needs_choice ||
          !Admits(variant, card, tuning, segment, demand) ||
          variant.ShapeFor(segment.stride, demand.queries, card.shared_bytes_max).queries == 0) {
        continue;
      }
      // If this sample gives no gate, a sample for fewer queries gives none either.
      return PlanRowScan(variant, card, tuning, workspace, segment, demand);
    }
  }
  return std::nullopt;
}

}  // namespace

GateRanks PassPlan::FindRanks(std::size_t reach) const {
  const auto rank_in = [&](double share) {
    return static_cast<unsigned>(certificate::SpeculativeRank(reach, share));
  };
  return {rank_in(sample_share), second_tiles != 0 ? rank_in(second_share) : 0};
}

PassChoice ToChoice(const PassPlan& plan) {
  return {plan.variant, plan.finish, plan.is_mapped, plan.second_gate_share, 1};
}

std::optional<PassPlan> WithSecondGate(PassPlan plan, unsigned row_count, unsigned one_row_in) {
  if (one_row_in == 0) return std::nullopt;
  plan.second_gate_share = one_row_in;
  plan.second_tiles = row_count / kScanTileRows / one_row_in;
  plan.second_share = static_cast<double>(plan.second_tiles) * kScanTileRows / row_count;
  if (plan.second_tiles < kScanGroupsMax || plan.second_share <= plan.sample_share) {
    return std::nullopt;
  }
  return plan;
}

double ExpectedHits(double rank, double groups, double group_rows, double row_count) {
  if (rank >= groups || group_rows >= row_count) return row_count;
  return std::min(row_count, std::log1p(-rank / groups) / std::log1p(-group_rows / row_count));
}

std::optional<PassPlan> PlanVariant(const KernelVariant& variant, const CardTraits& card,
                                    const GpuTuning& tuning, const WorkspaceSize& workspace,
                                    const SegmentSize& segment, const PassDemand& demand) {
  if (!Admits(variant, card, tuning, segment, demand)) return std::nullopt;
  return IsScan(variant.strategy) ? PlanRowScan(variant, card, tuning, workspace, segment, demand)
                                  : PlanGemm(variant, card, tuning, workspace, segment, demand);
}

std::optional<PassPlan> PlanPass(const CardTraits& card, const GpuTuning& tuning,
                                 const WorkspaceSize& workspace, const SegmentSize& segment,
                                 const PassDemand& demand) {
  if (demand.choice != nullptr) {
    const auto plan =
        PlanVariant(*demand.choice->variant, card, tuning, workspace, segment, demand);
    if (plan) return plan;
  }
  for (const KernelVariant& variant : KernelVariants()) {
    if (variant.needs_choice) continue;
    const auto plan = PlanVariant(variant, card, tuning, workspace, segment, demand);
    if (plan) return plan;
  }
  // Without matrix products a large batch takes several scans.
  return PlanPartByScan(card, tuning, workspace, segment, demand);
}

}  // namespace simile::backend::cuda
