#include "backend/cuda/batch_search.h"

#include <algorithm>
#include <cassert>
#include <functional>

#include <fmt/format.h>

#include "simile/rank_key.h"

namespace simile::backend::cuda {
namespace {

using certificate::CheapStorage;

// Rows that a query leaves out are looked up for every hit, and as many more hits must come
// through; from here on they cost more than a mask of their own.
constexpr std::size_t kExcludedOfListMax = 2'048;
// Overflows are expected once in a million queries: one of so many of a pass shows rows that lie
// too dense for its room.
constexpr std::size_t kOverflowShare = 64;

}  // namespace

RoadNames::RoadNames(int capability)
    : row_scan(fmt::format("fp16-scan-sm{}", capability)),
      gemm(fmt::format("fp16-gemm-sm{}", capability)),
      gather(fmt::format("gather-sm{}", capability)),
      canonical(fmt::format("scan-sm{}", capability)) {}

void BatchSearch::Run(const SearchBatch& batch, SearchResult& result) {
  batch_ = &batch;
  result_ = &result;
  rows_.filters().Release();  // of a batch that failed
  for (std::uint32_t query = 0; query < batch.specs.size(); ++query) Add(query);
  Flush();
}

void BatchSearch::Add(std::uint32_t query) {
  const QuerySpec& spec = batch_->specs[query];
  ListExcluded(spec, excluded_);
  const RowMask* mask = spec.mask;
  const std::size_t room = runner_.workspace().size().excluded_max;
  if (excluded_.size() > std::min(kExcludedOfListMax, room)) {
    mask = &MaskWithout(spec, excluded_);
    excluded_.clear();
  }
  if (excluded_rows_.size() + excluded_.size() > room) Flush();
  const Filter* filter = mask != nullptr ? FilterOf(*mask) : nullptr;
  const std::size_t passing =
      (filter != nullptr ? filter->passing : rows_.size().row_count) - excluded_.size();
  Ask ask;
  ask.query = query;
  ask.filter = filter;
  ask.wanted = static_cast<unsigned>(std::min<std::size_t>(spec.k, passing));
  if (ask.wanted == 0) return;
  ask.first_excluded = static_cast<std::uint32_t>(excluded_rows_.size());
  ask.excluded_count = static_cast<std::uint32_t>(excluded_.size());
  excluded_rows_.insert(excluded_rows_.end(), excluded_.begin(), excluded_.end());
  if (filter != nullptr && filter->is_list) {
    gathers_.push_back(ask);
  } else if (rows_.size().row_count <= tuning_.canonical_rows_max) {
    canonical_.push_back(ask);
  } else {
    passes_.push_back(ask);
  }
}

// Queries of a batch mostly share their masks: each is looked at once.
const Filter* BatchSearch::FilterOf(const RowMask& mask) {
  const auto known = std::ranges::find(known_, &mask, &decltype(known_)::value_type::first);
  if (known != known_.end()) return known->second;
  const unsigned list_max = rows_.size().row_count / ListShare(mask);
  const auto use = [&] {
    return rows_.filters().Use(mask, list_max, runner_.workspace().stream(0));
  };
  const Filter* filter = use();
  if (filter == nullptr) {
    Flush();  // which puts every filter out of use
    filter = use();
  }
  assert(filter != nullptr);
  known_.emplace_back(&mask, filter);
  return filter;
}

// A filter becomes a list where at most one row in so many passes. Each query reads the rows of its
// list by itself, as fp32; a pass reads half the bytes of all rows for many queries. And rows on
// the host come over a bus that is some thirty times slower.
unsigned BatchSearch::ListShare(const RowMask& mask) const {
  constexpr std::size_t kBusFactor = 32;
  const auto sharing =
      static_cast<std::size_t>(std::ranges::count(batch_->specs, &mask, &QuerySpec::mask));
  const std::size_t cost =
      2 * std::max<std::size_t>(sharing, 1) * (rows_.rows_on_device() ? 1 : kBusFactor);
  return static_cast<unsigned>(std::max<std::size_t>(tuning_.gather_share, cost));
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
  runner_.UploadExcluded(excluded_rows_);
  RunCanonical(gathers_, names_.gather);
  RunPasses();
  RunCanonical(canonical_, names_.canonical);
  passes_.clear();
  excluded_rows_.clear();
  known_.clear();
  rows_.filters().Release();
}

// Those that reach furthest go first: with others that do, and not into every plan.
void BatchSearch::RunPasses() {
  std::ranges::stable_sort(passes_, std::greater<>(), &Ask::reach);
  for (std::span<Ask> left(passes_); !left.empty();) {
    PassDemand demand;
    demand.queries = static_cast<unsigned>(left.size());
    demand.hits_max = std::ranges::max(left, {}, &Ask::wanted).wanted;
    demand.reach_max = left.front().reach();
    demand.growth = rows_.growth();
    demand.scan_margin = 2 * static_cast<double>(rows_.bound(CheapStorage::kFloat));
    demand.gemm_margin = 2 * static_cast<double>(rows_.bound(CheapStorage::kHalf));
    const auto plan = PlanPass(card_, tuning_, runner_.workspace().size(), rows_.size(), demand);
    if (!plan) {  // it reaches too far for any gate
      canonical_.push_back(left.front());
      left = left.subspan(1);
      continue;
    }
    const std::span<Ask> taken = left.first(std::min<std::size_t>(plan->slots, left.size()));
    runner_.Run(*plan, *batch_, taken);
    Conclude(*plan, taken);
    left = left.subspan(taken.size());
  }
}

void BatchSearch::Conclude(const PassPlan& plan, std::span<Ask> asks) {
  const std::string& name = plan.road == PassPlan::Road::kRowScan ? names_.row_scan : names_.gemm;
  std::size_t overflows = 0;
  for (std::size_t i = 0; i < asks.size(); ++i) {
    Ask& ask = asks[i];
    const kernels::Verdict& verdict = runner_.VerdictOf(i);
    ask.cost.rows_scanned += rows_.size().row_count;
    ask.cost.rows_rescored += verdict.kept;
    if (verdict.flag == kernels::kProven) {
      Write(ask, runner_.Answer(i), name);
      continue;
    }
    if (verdict.flag == kernels::kOverflow) ++overflows;
    ++ask.cost.rescans;
    canonical_.push_back(ask);
  }
  if (overflows * kOverflowShare > asks.size()) rows_.Grow();
}

void BatchSearch::RunCanonical(std::vector<Ask>& asks, const std::string& name) {
  for (std::span<Ask> left(asks); !left.empty();) {
    const std::span<Ask> taken = left.first(runner_.CanonicalSlots(left));
    runner_.RunCanonical(*batch_, taken);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const Filter* filter = taken[i].filter;
      taken[i].cost.rows_scanned +=
          filter != nullptr && filter->is_list ? filter->passing : rows_.size().row_count;
      Write(taken[i], runner_.Answer(i), name);
    }
    left = left.subspan(taken.size());
  }
  asks.clear();
}

void BatchSearch::Write(const Ask& ask, std::span<const kernels::Key> answer,
                        const std::string& name) {
  const float threshold = batch_->specs[ask.query].score_threshold;
  const std::span<Hit> room = result_->Room(ask.query);
  std::size_t count = 0;
  for (const kernels::Key packed : answer.first(ask.wanted)) {
    const RankKey key = RankKey::FromPacked(packed);
    if (packed == 0 || !(key.score() >= threshold)) break;
    room[count++] = {rows_.first_row() + key.row(), key.score()};
  }
  result_->SetCount(ask.query, count);
  result_->SetCost(ask.query, ask.cost);
  result_->SetEngine(ask.query, name.c_str());
}

}  // namespace simile::backend::cuda
