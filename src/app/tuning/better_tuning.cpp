#include "app/tuning/better_tuning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::app {
namespace {

// How the times of searches change.
struct TimeRatios {
  double mean = 1;  // geometric
  double greatest = 0;

  bool is_better() const { return mean <= 1 - kThreadsGainMin && greatest <= 1 + kSearchLossMax; }
};

// Nothing unless every kind of search was measured.
std::optional<TimeRatios> CompareTimes(std::span<const TimedWorkload> workloads) {
  TimeRatios ratios;
  double logarithms = 0;
  for (const TimedWorkload& each : workloads) {
    if (each.before_s <= 0 || each.after_s <= 0) return std::nullopt;
    const double ratio = each.after_s / each.before_s;
    logarithms += std::log(ratio);
    ratios.greatest = std::max(ratios.greatest, ratio);
  }
  ratios.mean = std::exp(logarithms / static_cast<double>(workloads.size()));
  return ratios;
}

}  // namespace

std::string WorkloadText(const Workload& workload, std::span<const TunedShape> collections) {
  const std::string queries =
      workload.batch == 1 ? "1 query" : fmt::format("{} queries", base::Grouped(workload.batch));
  const std::string text = fmt::format("{}, {}", collections[workload.collection].name, queries);
  if (workload.rows_for_one == 0) return text;
  return fmt::format("{}, filter 1 in {}", text, base::Grouped(workload.rows_for_one));
}

std::vector<Workload> ServiceWorkloads(std::size_t collection_count, std::size_t batch_max) {
  constexpr std::size_t kBatches[] = {1, 4, 16, 64, 128, 256, 512, 1'024};
  constexpr std::size_t kFilteredRowsForOne = 20;
  std::vector<Workload> workloads;
  for (std::size_t i = 0; i < collection_count; ++i) {
    workloads.push_back({i, 1, kFilteredRowsForOne});
    for (const std::size_t batch : kBatches) {
      if (batch <= batch_max) workloads.push_back({i, batch, 0});
    }
  }
  std::ranges::stable_sort(workloads, {}, &Workload::batch);
  return workloads;
}

std::vector<unsigned> OtherThreads(unsigned threads_usable, unsigned in_force) {
  std::vector<unsigned> others;
  for (unsigned quarters = 4; quarters > 0; --quarters) {
    const unsigned threads = threads_usable * quarters / 4;
    const bool is_listed = !others.empty() && others.back() == threads;
    if (threads > 0 && threads != in_force && !is_listed) others.push_back(threads);
  }
  return others;
}

BetterTuning ChooseThreads(unsigned in_force, const std::vector<TriedThreads>& tried,
                           double other_load) {
  BetterTuning better{.threads_before = in_force,
                      .threads_after = in_force,
                      .conclusion = ThreadsConclusion::kNoneBetter,
                      .workloads = tried.front().workloads,
                      .other_load = other_load};
  for (TimedWorkload& each : better.workloads) each.after_s = each.before_s;
  if (better.is_busy()) {
    better.conclusion = ThreadsConclusion::kBusy;
  } else if (tried.front().threads == in_force) {
    better.conclusion = ThreadsConclusion::kNoChoice;
  }
  if (better.conclusion != ThreadsConclusion::kNoneBetter) return better;
  double best_mean = 1;
  bool has_unmeasured = false;
  for (const TriedThreads& each : tried) {
    const std::optional<TimeRatios> ratios = CompareTimes(each.workloads);
    has_unmeasured = has_unmeasured || !ratios;
    if (!ratios || !ratios->is_better() || ratios->mean >= best_mean) continue;
    best_mean = ratios->mean;
    better.threads_after = each.threads;
    better.workloads = each.workloads;
  }
  if (better.threads_after != in_force) {
    better.conclusion = ThreadsConclusion::kChanged;
  } else if (has_unmeasured) {
    better.conclusion = ThreadsConclusion::kNoTime;
  }
  return better;
}

std::size_t SufficientBatch(std::span<const TimedWorkload> workloads, std::size_t collection) {
  std::map<std::size_t, double> rates;  // by batch
  double best = 0;
  for (const auto& [workload, before_s, after_s] : workloads) {
    if (workload.collection != collection || workload.rows_for_one > 0 || after_s <= 0) continue;
    const double rate = static_cast<double>(workload.batch) / after_s;
    rates.emplace(workload.batch, rate);
    best = std::max(best, rate);
  }
  for (const auto& [batch, rate] : rates) {
    if (rate >= kSufficientShare * best) return batch;
  }
  return 0;
}

}  // namespace simile::app
