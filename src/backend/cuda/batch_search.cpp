#include "backend/cuda/batch_search.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "backend/cuda/profiler_range.h"
#include "backend/zero_query.h"
#include "simile/matrix_view.h"

namespace simile::backend::cuda {
namespace {

using certificate::CheapStorage;

// A query with more excluded rows gets its own mask instead of a list. With a list, every hit looks
// its row up, and the gate must let that many more hits through. Estimated from log2(2'048) = 11
// reads per hit against 4 bytes per row for the mask.
constexpr std::size_t kExcludedOfListMax = 2'048;

// The owner of a block of lent hits. The block is destroyed before the engine, because it is memory
// of the engine's device.
struct LentAnswers {
  std::shared_ptr<const void> engine;
  std::shared_ptr<const PinnedBlock> block;
};

bool NeedsNoPass(const ResidentRows& rows, const GpuTuning& tuning) {
  return rows.size().row_count <= tuning.canonical_rows_max;
}

}  // namespace

PassDemand MakeDemand(const ResidentRows& rows, std::size_t queries, unsigned hits_max,
                      unsigned reach_max, bool int8_allowed) {
  return {.queries = static_cast<unsigned>(queries),
          .hits_max = hits_max,
          .reach_max = reach_max,
          .int8_rows = int8_allowed && rows.has_int8(),
          .growth = rows.growth(),
          .scan_margin = 2 * static_cast<double>(rows.bound(CheapStorage::kFloat)),
          .int8_margin = rows.int8_margin(),
          .gemm_margin = 2 * static_cast<double>(rows.bound(CheapStorage::kHalf)),
          .choice = rows.choices().Find(static_cast<unsigned>(queries), hits_max)};
}

StrategyNames::StrategyNames(int capability)
    : gather(fmt::format("gather-sm{}", capability)),
      canonical(fmt::format("scan-sm{}", capability)) {
  for (const KernelVariant& variant : KernelVariants()) {
    passes.push_back(fmt::format("{}-sm{}", variant.engine, capability));
  }
}

const std::string& StrategyNames::Of(const KernelVariant& variant) const {
  return passes[static_cast<std::size_t>(&variant - KernelVariants().data())];
}

const std::string& NameOfOneQuery(const CardTraits& card, const GpuTuning& tuning,
                                  const StrategyNames& names, const WorkspaceSize& workspace,
                                  const ResidentRows& rows) {
  constexpr unsigned kHits = 10;
  if (NeedsNoPass(rows, tuning)) return names.canonical;
  const auto plan =
      PlanPass(card, tuning, workspace, rows.size(), MakeDemand(rows, 1, kHits, kHits, true));
  return plan ? names.Of(*plan->variant) : names.canonical;
}

void BatchSearch::Begin(const SearchBatch& batch, SearchResult& result) {
  batch_ = &batch;
  result_ = &result;
  rows_.filters().Release();  // filters of a batch that failed
  passes_.reserve(batch.specs.size());
}

void BatchSearch::Run(const SearchBatch& batch, SearchResult& result) {
  Begin(batch, result);
  for (std::uint32_t index = 0; index < batch.specs.size(); ++index) Add(index);
  Flush();
}

bool BatchSearch::Start(const SearchBatch& batch, SearchResult& result) {
  Begin(batch, result);
  // Leaves one query block free for a search of another thread.
  if (runner_.workspace().free_query_blocks() < 2 ||
      runner_.workspace().free_answer_blocks() == 0) {
    return false;
  }
  if (!NeedsOnlyPasses()) return false;
  for (std::uint32_t index = 0; index < batch.specs.size(); ++index) Add(index);
  SortByReach(passes_);
  std::optional<PassPlan> plan = passes_.empty() ? std::nullopt : PlanFor(passes_, true);
  if (!plan || plan->slots < passes_.size() || plan->is_mapped) return false;
  plan->lends_answers = true;
  const ProfilerRange range(names_.Of(*plan->variant).c_str());
  runner_.Fill(*plan, batch, passes_);
  if (!runner_.UploadExcludedOfNext(excluded_rows_)) return false;
  runner_.Start(/*marks_end=*/true);
  started_ = plan;
  return true;
}

void BatchSearch::Finish(Device& device) {
  runner_.Await();
  Conclude(*started_, passes_);
  passes_.clear();
  if (int8_reruns_.empty() && fp16_reruns_.empty() && canonical_.empty()) return;
  device.Await(runner_.workspace().stream(0));  // of the search after it: see UploadExcluded
  Flush();
}

bool BatchSearch::NeedsOnlyPasses() const {
  if (NeedsNoPass(rows_, tuning_)) return false;
  const std::size_t excluded_max = runner_.workspace().size().excluded_max;
  std::size_t excluded = 0;
  for (std::size_t i = 0; i < batch_->specs.size(); ++i) {
    const QuerySpec& spec = batch_->specs[i];
    if (spec.mask != nullptr || spec.excluded_rows.size() > kExcludedOfListMax) return false;
    if (IsZeroVector(batch_->queries[i])) return false;
    excluded += spec.excluded_rows.size();
  }
  return excluded <= excluded_max;
}

void BatchSearch::Add(std::uint32_t index) {
  const QuerySpec& spec = batch_->specs[index];
  if (IsZeroVector(batch_->queries[index])) {
    result_->MakeSpace();
    return AnswerZeroQuery(rows_.host(), spec, index, *result_);
  }
  ListExcluded(spec, excluded_);
  const RowMask* mask = spec.mask;
  const std::size_t excluded_max = runner_.workspace().size().excluded_max;
  if (excluded_.size() > std::min(kExcludedOfListMax, excluded_max)) {
    mask = &MaskWithout(spec, excluded_);
    excluded_.clear();
  }
  if (excluded_rows_.size() + excluded_.size() > excluded_max) Flush();
  const Filter* filter = mask != nullptr ? UseFilter(*mask) : nullptr;
  const std::size_t passing =
      (filter != nullptr ? filter->passing : rows_.size().row_count) - excluded_.size();
  const auto wanted = static_cast<unsigned>(std::min<std::size_t>(spec.k, passing));
  if (wanted == 0) return;
  std::vector<DeviceQuery>& kind = filter != nullptr && filter->is_list ? gathers_
                                   : NeedsNoPass(rows_, tuning_)        ? canonical_
                                                                        : passes_;
  DeviceQuery& query = kind.emplace_back();
  query.index = index;
  query.filter = filter;
  query.wanted = wanted;
  query.first_excluded = static_cast<std::uint32_t>(excluded_rows_.size());
  query.excluded_count = static_cast<std::uint32_t>(excluded_.size());
  excluded_rows_.insert(excluded_rows_.end(), excluded_.begin(), excluded_.end());
}

// Looks up each mask once, because queries of a batch usually share masks.
const Filter* BatchSearch::UseFilter(const RowMask& mask) {
  const auto known = std::ranges::find(known_, &mask, &decltype(known_)::value_type::first);
  if (known != known_.end()) return known->second;
  const unsigned list_max = rows_.size().row_count / ListShare(mask);
  const auto use = [&] {
    return rows_.filters().Use(mask, list_max, runner_.workspace().stream(0));
  };
  const Filter* filter = use();
  if (filter == nullptr) {
    Flush();  // releases every filter
    filter = use();
  }
  assert(filter != nullptr);
  known_.emplace_back(&mask, filter);
  return filter;
}

// A filter becomes a list when at most one row in this many passes. Each query reads the fp32 rows
// of its list by itself; a pass reads half the bytes of all rows for many queries. Rows on the host
// cross a bus that is much slower than device memory.
unsigned BatchSearch::ListShare(const RowMask& mask) const {
  constexpr std::size_t kBusFactor = 32;  // estimated: 2 TB/s (A100) over 64 GB/s (PCIe 5.0)
  const auto sharing =
      static_cast<std::size_t>(std::ranges::count(batch_->specs, &mask, &QuerySpec::mask));
  const std::size_t cost =
      2 * std::max<std::size_t>(sharing, 1) * (rows_.rows_on_device() ? 1 : kBusFactor);
  const unsigned measured = rows_.choices().gather_share();
  const unsigned least = measured != 0 ? measured : tuning_.gather_share;
  return static_cast<unsigned>(std::max<std::size_t>(least, cost));
}

void BatchSearch::ListExcluded(const QuerySpec& spec, std::vector<unsigned>& excluded) const {
  excluded.clear();
  const Row first = rows_.first_row();
  for (auto row = std::ranges::lower_bound(spec.excluded_rows, first);
       row != spec.excluded_rows.end() && *row - first < rows_.size().row_count; ++row) {
    if (spec.mask == nullptr || spec.mask->Allows(*row)) excluded.push_back(*row - first);
  }
}

const RowMask& BatchSearch::MaskWithout(const QuerySpec& spec, std::span<const unsigned> excluded) {
  const Row first = rows_.first_row();
  if (spec.mask != nullptr) {
    masks_.push_back(*spec.mask);
  } else {
    masks_.emplace_back(std::size_t{first} + rows_.size().row_count).Invert();
  }
  for (const unsigned row : excluded) masks_.back().Forbid(first + row);
  return masks_.back();
}

void BatchSearch::Flush() {
  runner_.UploadExcluded(
      excluded_rows_);  // after Finish, the device's list may belong to a later search
  RunCanonical(gathers_, names_.gather);
  RunPasses(passes_, true);
  RunPasses(int8_reruns_, true);
  RunPasses(fp16_reruns_, false);
  RunCanonical(canonical_, names_.canonical);
  excluded_rows_.clear();
  known_.clear();
  rows_.filters().Release();
}

// Sorts the largest reach first. Queries with a large reach then share a plan and do not enlarge
// the plans of other queries.
void BatchSearch::SortByReach(std::vector<DeviceQuery>& queries) {
  // stable_sort allocates.
  if (!std::ranges::is_sorted(queries, std::greater<>(), &DeviceQuery::reach)) {
    std::ranges::stable_sort(queries, std::greater<>(), &DeviceQuery::reach);
  }
}

void BatchSearch::RunPasses(std::vector<DeviceQuery>& queries, bool int8_allowed) {
  SortByReach(queries);
  std::span<DeviceQuery> left(queries);
  for (std::optional<PlannedPass> next = FillNext(left, int8_allowed); next;) {
    const PlannedPass running = *std::exchange(next, std::nullopt);
    const ProfilerRange range(names_.Of(*running.plan.variant).c_str());
    runner_.Start();
    if (runner_.CanFill()) next = FillNext(left, int8_allowed);  // while the device works
    runner_.Await();
    Conclude(running.plan, running.queries);
    if (!next) next = FillNext(left, int8_allowed);
  }
  queries.clear();
}

// REQUIRES: sorted by reach.
std::optional<PassPlan> BatchSearch::PlanFor(std::span<const DeviceQuery> queries,
                                             bool int8_allowed) const {
  const unsigned hits_max = std::ranges::max(queries, {}, &DeviceQuery::wanted).wanted;
  return PlanPass(
      card_, tuning_, runner_.workspace().size(), rows_.size(),
      MakeDemand(rows_, queries.size(), hits_max, queries.front().reach(), int8_allowed));
}

// Plans and fills the next pass, and takes its queries out of `left`; empty when none is left.
std::optional<BatchSearch::PlannedPass> BatchSearch::FillNext(std::span<DeviceQuery>& left,
                                                              bool int8_allowed) {
  for (; !left.empty(); left = left.subspan(1)) {
    const std::optional<PassPlan> plan = PlanFor(left, int8_allowed);
    if (!plan) {  // no gate can let that many rows through
      canonical_.push_back(left.front());
      continue;
    }
    const auto taken = left.first(std::min<std::size_t>(plan->slots, left.size()));
    left = left.subspan(taken.size());
    runner_.Fill(*plan, *batch_, taken);
    return PlannedPass{*plan, taken};
  }
  return std::nullopt;
}

void BatchSearch::Conclude(const PassPlan& plan, std::span<DeviceQuery> queries) {
  std::size_t overflows = 0;
  if (runner_.lends_answers()) {
    result_->Keep(
        std::make_shared<const LentAnswers>(LentAnswers{engine_, runner_.answer_block()}));
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    DeviceQuery& query = queries[i];
    const kernels::Proof& proof = runner_.ProofOf(i);
    query.cost.rows_scanned += rows_.size().row_count;
    query.cost.rows_rescored += proof.kept;
    if (proof.flag == kernels::kProven) {
      Write(query, runner_.Answer(i), names_.Of(*plan.variant));
      continue;
    }
    if (proof.flag == kernels::kOverflow) ++overflows;
    ++query.cost.rescans;
    std::vector<DeviceQuery>& next = NextAfter(plan, i, query);
    next.push_back(query);
  }
  if (plan.strategy() == PassStrategy::kInt8Scan) {
    rows_.CountInt8(queries.size(), overflows);
    return;
  }
  if (!rows_.has_int8())
    rows_.CountInt8(queries.size(), 0);  // so that the int8 rows are tried again in time
  if (overflows * kOverflowShare > queries.size()) rows_.Grow();
}

// After an int8 scan that overflowed, the fp16 scan, whose smaller bound separates more rows. If an
// int8 scan found the wanted number of rows, another int8 scan with their last score as its gate,
// which cannot be too high. Otherwise canonical scores.
std::vector<DeviceQuery>& BatchSearch::NextAfter(const PassPlan& plan, std::size_t index,
                                                 DeviceQuery& query) {
  const kernels::Proof& proof = runner_.ProofOf(index);
  if (plan.strategy() != PassStrategy::kInt8Scan) return canonical_;
  if (proof.flag == kernels::kOverflow) return fp16_reruns_;
  if (proof.flag != kernels::kBelowGate || query.reached > kernels::kLowestScore) return canonical_;
  query.reached = runner_.FindLastScore(index);
  return int8_reruns_;
}

void BatchSearch::RunCanonical(std::vector<DeviceQuery>& queries, const std::string& name) {
  for (std::span<DeviceQuery> left(queries); !left.empty();) {
    const ProfilerRange range(name.c_str());
    const std::span<DeviceQuery> taken = left.first(runner_.CanonicalSlots(left));
    runner_.RunCanonical(*batch_, taken);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const Filter* filter = taken[i].filter;
      taken[i].cost.rows_scanned +=
          filter != nullptr && filter->is_list ? filter->passing : rows_.size().row_count;
      Write(taken[i], runner_.Answer(i), name);
    }
    left = left.subspan(taken.size());
  }
  queries.clear();
}

void BatchSearch::Write(const DeviceQuery& query, std::span<const Hit> answer,
                        const std::string& name) {
  if (runner_.lends_answers()) {
    result_->SetLent(query.index, answer);
  } else {
    result_->MakeSpace();
    std::ranges::copy(answer, result_->Buffer(query.index).begin());
    result_->SetCount(query.index, answer.size());
  }
  result_->SetCost(query.index, query.cost);
  result_->SetEngine(query.index, name.c_str());
}

}  // namespace simile::backend::cuda
