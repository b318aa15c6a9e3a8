#include "backend/cuda/pass_timer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <absl/cleanup/cleanup.h>

#include "backend/cuda/batch_search.h"
#include "simile/zero_vector.h"

namespace simile::backend::cuda {
namespace {

// The first run may load code, and the second captures the graph.
constexpr unsigned kRunsBefore = 2;
constexpr unsigned kRunsMax = 5;
// Long passes are not repeated: their times vary less.
constexpr std::chrono::milliseconds kEnough{5};

constexpr unsigned kHitsOfFiltered = 10;
// The first ones of a segment: zero rows among them are no queries.
constexpr std::size_t kRowsLookedAt = 16'384;

}  // namespace

PassTimer::PassTimer(Device& device, ResidentRows& rows, const Clock& clock,
                     std::function<bool()> must_stop)
    : device_(device), rows_(rows), clock_(clock), must_stop_(std::move(must_stop)) {
  const MatrixView& all = rows.host().rows;
  const unsigned largest = std::ranges::max(PassClasses(), {}, &PassClass::queries_max).queries_max;
  const std::size_t end = std::min(all.row_count(), kRowsLookedAt);
  for (std::size_t row = 0; row < end && queries_.size() < largest; ++row) {
    if (IsZeroVector(all[row])) continue;  // no pass answers it
    queries_.emplace_back().index = static_cast<std::uint32_t>(row);
    specs_.resize(row + 1);
  }
}

template <class Run>
std::optional<double> PassTimer::Fastest(Run run) const {
  for (unsigned i = 0; i < kRunsBefore; ++i) {
    run();
    if (must_stop_()) return std::nullopt;
  }
  const Clock::TimePoint first = clock_.Now();
  double least = std::numeric_limits<double>::infinity();
  for (unsigned i = 0; i < kRunsMax; ++i) {
    const Clock::TimePoint began = clock_.Now();
    run();
    const Clock::TimePoint ended = clock_.Now();
    least = std::min(least, std::chrono::duration<double>(ended - began).count());
    if (ended - first >= kEnough || must_stop_()) break;
  }
  return least;
}

Trial PassTimer::Time(Workspace& workspace, const PassPlan& plan, unsigned queries, unsigned hits) {
  if (queries_.size() < queries) return {Trial::End::kUnproven, 0};
  const std::span<DeviceQuery> batch = std::span(queries_).first(queries);
  for (DeviceQuery& query : batch) query.wanted = hits;
  PassRunner runner(device_, workspace, rows_);
  const auto seconds = Fastest([&] {
    runner.Run(plan, SearchBatch{rows_.host().rows, specs_}, batch);
  });
  if (!seconds) return {Trial::End::kStopped, 0};
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (runner.ProofOf(i).flag != kernels::kProven) return {Trial::End::kUnproven, 0};
  }
  return {Trial::End::kTimed, *seconds};
}

Trial PassTimer::TimeFiltered(Workspace& workspace, const GpuTuning& tuning, unsigned one_row_in,
                              bool as_list) {
  const Trial unproven{Trial::End::kUnproven, 0};
  const SegmentSize& size = rows_.size();
  if (queries_.empty() || !rows_.rows_on_device()) return unproven;
  RowMask mask(std::size_t{rows_.first_row()} + size.row_count);
  for (unsigned row = 0; row < size.row_count; row += one_row_in) {
    mask.Allow(rows_.first_row() + row);
  }
  const absl::Cleanup release = [&] { rows_.filters().Release(); };
  const unsigned list_max = as_list ? size.row_count : 0;
  const Filter* const filter = rows_.filters().Use(mask, list_max, workspace.stream(0));
  if (filter == nullptr || filter->is_list != as_list || filter->passing < kHitsOfFiltered) {
    return unproven;
  }
  DeviceQuery query = queries_.front();
  query.filter = filter;
  query.wanted = kHitsOfFiltered;
  const SearchBatch batch{rows_.host().rows, specs_};
  PassRunner runner(device_, workspace, rows_);
  std::optional<double> seconds;
  if (as_list) {
    seconds = Fastest([&] { runner.RunCanonical(batch, {&query, 1}); });
  } else {
    const auto plan = PlanPass(device_.traits(), tuning, workspace.size(), size,
                               DemandOf(rows_, 1, query.wanted, query.reach(), true));
    if (!plan) return unproven;
    seconds = Fastest([&] { runner.Run(*plan, batch, {&query, 1}); });
    if (seconds && runner.ProofOf(0).flag != kernels::kProven) return unproven;
  }
  if (!seconds) return {Trial::End::kStopped, 0};
  return {Trial::End::kTimed, *seconds};
}

}  // namespace simile::backend::cuda
