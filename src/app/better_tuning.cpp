#include "app/better_tuning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::app {
namespace {

using backend::cpu::Int8Tuning;
using backend::cpu::RangeOfRatios;
using backend::cpu::RatioRange;
using backend::cpu::TimePair;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;
using std::chrono::milliseconds;

// The parts of the time after which the search for better parameters ends, and the comparison of
// before with after. The rest is the caller's, to compare answers.
constexpr double kSearchShare = 0.6;
constexpr double kTotalShare = 0.9;
// Of the time left for comparisons of before with after, what one of them takes.
constexpr double kComparisonShare = 0.6;
constexpr milliseconds kCompareMin{40};
constexpr std::size_t kPairsAtOnce = 4;
constexpr std::size_t kPairsToDecide = 12;
constexpr std::size_t kPairsMax = 300;
// A parameter's neighbours on both sides, two in a row without a gain, and each gain confirmed.
constexpr std::size_t kComparisonsOfParameter = 6;

// A parameter that is tuned: one of TuningValues(), or the threads.
struct Parameter {
  const TuningValue* value;        // null: the threads
  std::vector<std::size_t> steps;  // ascending: the values that are tried

  std::size_t Of(const EngineSetup& setup) const {
    return value != nullptr ? setup.tuning.*value->value : setup.threads;
  }
  void Set(EngineSetup& setup, std::size_t number) const {
    if (value != nullptr) {
      setup.tuning.*value->value = number;
    } else {
      setup.threads = static_cast<unsigned>(number);
    }
  }
};

std::vector<std::size_t> Doubling(std::size_t first, std::size_t last) {
  std::vector<std::size_t> steps;
  for (std::size_t step = first; step <= last; step *= 2) steps.push_back(step);
  return steps;
}

// Quarters of the usable threads.
std::vector<std::size_t> ThreadSteps(std::size_t usable) {
  std::vector<std::size_t> steps;
  for (std::size_t quarters = 1; quarters <= 4; ++quarters) {
    const std::size_t threads = usable * quarters / 4;
    if (threads > 0 && (steps.empty() || threads > steps.back())) steps.push_back(threads);
  }
  return steps;
}

// The values of a parameter that are worth a measurement.
std::vector<std::size_t> StepsOf(const TuningValue& value) {
  constexpr std::size_t kKiB = 1'024;
  if (value.value == &Int8Tuning::block_bytes) {
    return {128 * kKiB, 192 * kKiB, 256 * kKiB, 384 * kKiB, 512 * kKiB, 768 * kKiB, 1'024 * kKiB};
  }
  if (value.value == &Int8Tuning::large_batch_min) {
    return {5, 6, 8, 12, 16, 24, 32, 64, value.max};
  }
  std::vector<std::size_t> steps = Doubling(value.min, std::min(value.max, value.min << 7U));
  if (value.value == &Int8Tuning::int4_from_code_bytes) return Doubling(value.min, value.max);
  if (steps.back() < value.max) steps.push_back(value.max);
  return steps;
}

// What a change of a parameter from one value to another concerns: `low` is the lower of the two.
struct Change {
  std::size_t low;
  std::size_t high;
  unsigned threads;
  std::size_t batch_max;
};

// Batches from `first` on, below `end`: the ends of the range.
std::vector<std::size_t> EndsOf(std::size_t first, std::size_t end, std::size_t batch_max) {
  if (first > batch_max) return {};
  const std::size_t last = std::min(end - 1, batch_max);
  return first == last ? std::vector{first} : std::vector{first, last};
}

// The batches of one collection whose searches the change of this value may make slower or faster.
std::vector<Workload> WorkloadsOf(const TuningValue& value, const TunedShape& shape,
                                  const Change& change) {
  const auto plain = [](const std::vector<std::size_t>& batches) {
    std::vector<Workload> workloads;
    for (const std::size_t batch : batches) workloads.push_back({0, batch, 0});
    return workloads;
  };
  const auto within = [&](std::size_t number) {
    return change.low <= number && number < change.high;
  };
  if (value.value == &Int8Tuning::block_bytes) return plain({1, 16, 64, 256});
  if (value.value == &Int8Tuning::large_batch_min) {
    return plain(EndsOf(change.low, change.high, change.batch_max));
  }
  if (value.value == &Int8Tuning::gather_share) {
    const auto between = static_cast<std::size_t>(
        std::sqrt(static_cast<double>(change.low) * static_cast<double>(change.high)));
    if (shape.row_count < 2 * between) return {};
    return {{0, 1, between}, {0, 16, between}};
  }
  if (value.value == &Int8Tuning::scan_rows_max) {
    // Scanned up to the parameter itself.
    return within(shape.row_count - 1) ? plain({1, 4, 16, 64}) : plain({});
  }
  if (value.value == &Int8Tuning::int4_from_code_bytes) {
    return within(shape.code_bytes) ? plain({1, 2, 4}) : plain({});
  }
  if (change.threads < 2) return {};
  return plain(EndsOf(change.low * change.threads, change.high * change.threads, change.batch_max));
}

// Median times of one search each.
std::pair<double, double> MedianTimes(const std::vector<TimePair>& pairs) {
  std::vector<double> firsts, seconds;
  for (const TimePair& pair : pairs) {
    firsts.push_back(pair.first_s);
    seconds.push_back(pair.second_s);
  }
  std::ranges::sort(firsts);
  std::ranges::sort(seconds);
  return {firsts[firsts.size() / 2], seconds[seconds.size() / 2]};
}

// More pairs would not change what follows from the ratio.
bool IsDecided(const RatioRange& ratio) {
  const bool not_better = ratio.low > 1 - kBetterShare;
  const bool not_slower = ratio.high < 1 + kSlowerShare;
  return IsBetter(ratio) || IsSlower(ratio) || (not_better && not_slower);
}

class TuningSearch {
 public:
  TuningSearch(const TuneTask& task, TuneProbe& probe, const Clock& clock,
               const TuneProgress& progress)
      : task_(task),
        probe_(probe),
        clock_(clock),
        progress_(progress),
        start_(clock.Now()),
        search_end_(start_ + PartOf(task.duration, kSearchShare)),
        end_(start_ + PartOf(task.duration, kTotalShare)) {
    better_.after = task.before;
  }

  BetterTuning Run() {
    probe_.OtherLoad();
    std::vector<Parameter> parameters{{nullptr, ThreadSteps(task_.threads_usable)}};
    for (const TuningValue& value : TuningValues()) parameters.push_back({&value, StepsOf(value)});
    for (std::size_t i = 0; i < parameters.size(); ++i) Tune(parameters[i], parameters.size() - i);
    LeaveAllIfBusy();
    CompareAll(parameters);
    LeaveAllIfBusy();
    return std::move(better_);
  }

 private:
  enum class Outcome : std::uint8_t { kBetter, kSame, kSlower, kNoTime };

  static Clock::Duration PartOf(Clock::Duration whole, double share) {
    return std::chrono::duration_cast<Clock::Duration>(whole * share);
  }

  void Report(const std::string& what) const {
    if (!progress_) return;
    const double done = std::chrono::duration<double>(clock_.Now() - start_) /
                        std::chrono::duration<double>(task_.duration);
    progress_(std::clamp(done, 0.0, 1.0), what);
  }

  bool HasChoice(const Parameter& parameter) const {
    if (parameter.value == nullptr) return task_.threads_usable > 1;
    if (parameter.value->value == &Int8Tuning::large_batch_min) return task_.kernels_differ;
    if (parameter.value->value == &Int8Tuning::int4_from_code_bytes) return task_.int4_possible;
    return true;
  }

  // What to measure for a change of the parameter from what it is now to `to`.
  std::vector<Workload> Concerned(const Parameter& parameter, std::size_t to) const {
    const std::size_t from = parameter.Of(better_.after);
    const Change change{std::min(from, to), std::max(from, to), better_.after.threads,
                        task_.batch_max};
    std::vector<Workload> workloads;
    for (std::size_t i = 0; i < task_.collections.size(); ++i) {
      const TunedShape& shape = task_.collections[i];
      const bool scanned = shape.row_count <= better_.after.tuning.scan_rows_max;
      const bool concerns_scans =
          parameter.value == nullptr || parameter.value->value == &Int8Tuning::scan_rows_max;
      if (shape.row_count == 0 || (scanned && !concerns_scans)) continue;
      std::vector<Workload> own = parameter.value == nullptr
                                      ? std::vector<Workload>{{0, 1, 0}, {0, 16, 0}, {0, 256, 0}}
                                      : WorkloadsOf(*parameter.value, shape, change);
      for (Workload& workload : own) {
        workload.collection = i;
        if (workload.batch <= task_.batch_max) workloads.push_back(workload);
      }
    }
    return workloads;
  }

  //   left  how many parameters, this one included, share the time that is left
  void Tune(const Parameter& parameter, std::size_t left) {
    TunedParameter result;
    result.value = parameter.value;
    result.before = parameter.Of(better_.after);
    result.conclusion = TuneConclusion::kNoChoice;
    if (parameter.value == nullptr && !task_.threads_free) {
      result.conclusion = TuneConclusion::kFixed;
    } else if (HasChoice(parameter)) {
      const EngineSetup without = better_.after;
      parameter_end_ = clock_.Now() + (search_end_ - clock_.Now()) / static_cast<int>(left);
      Walk(parameter, /*upwards=*/true, result);
      if (better_.after == without) Walk(parameter, /*upwards=*/false, result);
    }
    result.after = parameter.Of(better_.after);
    better_.parameters.push_back(std::move(result));
  }

  // Tries the values on one side of the present one, nearest first, until one is slower, two in a
  // row are no better, or the parameter's time is over.
  void Walk(const Parameter& parameter, bool upwards, TunedParameter& result) {
    std::vector<std::size_t> steps = parameter.steps;
    if (!upwards) std::ranges::reverse(steps);
    constexpr int kSameMax = 2;
    int same = 0;
    for (const std::size_t step : steps) {
      const std::size_t now = parameter.Of(better_.after);
      if (upwards ? step <= now : step >= now) continue;
      const std::vector<Workload> workloads = Concerned(parameter, step);
      if (workloads.empty()) continue;
      const Outcome outcome = clock_.Now() < parameter_end_
                                  ? Try(parameter, step, workloads, result)
                                  : Outcome::kNoTime;
      if (result.conclusion == TuneConclusion::kNoChoice) {
        result.conclusion = TuneConclusion::kNoneBetter;
      }
      if (outcome == Outcome::kNoTime) {
        if (result.conclusion != TuneConclusion::kChanged) {
          result.conclusion = TuneConclusion::kNoTime;
        }
        return;
      }
      if (outcome == Outcome::kSlower) return;
      same = outcome == Outcome::kSame ? same + 1 : 0;
      if (same == kSameMax) return;
    }
  }

  // Compares the parameter at this value with what it is now, and takes it if it is better, twice.
  Outcome Try(const Parameter& parameter, std::size_t value, const std::vector<Workload>& workloads,
              TunedParameter& result) {
    EngineSetup candidate = better_.after;
    parameter.Set(candidate, value);
    const std::string what = fmt::format("{} {}", result.name(), base::Grouped(value));
    const Clock::Duration slice = std::max<Clock::Duration>(
        kCompareMin, (parameter_end_ - clock_.Now()) /
                         static_cast<int>(kComparisonsOfParameter * workloads.size()));
    RatioRange best;
    Workload best_workload;
    for (int time = 0; time < 2; ++time) {
      best = {};
      bool any_better = false;
      bool in_doubt = false;  // a value that may be slower somewhere is not taken
      for (const Workload& workload : workloads) {
        Report(fmt::format("{} for {}", what, WorkloadText(workload, task_.collections)));
        const auto ratio = Compare(candidate, better_.after, workload,
                                   std::min(clock_.Now() + slice, search_end_), nullptr);
        if (!ratio) return Outcome::kNoTime;
        if (IsSlower(*ratio)) return Outcome::kSlower;
        in_doubt = in_doubt || ratio->median > 1 + kSlowerShare;
        any_better = any_better || IsBetter(*ratio);
        if (ratio->median >= best.median) continue;
        best = *ratio;
        best_workload = workload;
      }
      if (!any_better || in_doubt) return Outcome::kSame;
    }
    better_.after = candidate;
    result.conclusion = TuneConclusion::kChanged;
    result.ratio = best;
    result.workload = best_workload;
    return Outcome::kBetter;
  }

  // The ratio of the first setup's times to the second's; nothing when there was no time for one.
  //   times  gets the median times; may be null
  std::optional<RatioRange> Compare(const EngineSetup& first, const EngineSetup& second,
                                    const Workload& workload, Clock::TimePoint until,
                                    TunedWorkload* times) {
    std::vector<TimePair> pairs;
    std::optional<RatioRange> ratio;
    while (pairs.size() < kPairsMax) {
      // The least number of pairs is measured however short the slice; only the end of all stops
      // it.
      const Clock::TimePoint stop = ratio ? until : std::max(until, stop_of_minimum());
      const auto more = probe_.TimeInTurn(first, second, workload, kPairsAtOnce, stop);
      pairs.insert(pairs.end(), more.begin(), more.end());
      ratio = RangeOfRatios(pairs);
      if (more.size() < kPairsAtOnce || (ratio && clock_.Now() >= until)) break;
      if (ratio && pairs.size() >= kPairsToDecide && IsDecided(*ratio)) break;
    }
    if (times != nullptr && !pairs.empty()) {
      std::tie(times->after_s, times->before_s) = MedianTimes(pairs);
    }
    return ratio;
  }
  Clock::TimePoint stop_of_minimum() const { return in_search_ ? search_end_ : end_; }

  // The kinds of search that are compared in the end: those of service, not of one parameter.
  std::vector<Workload> ServiceWorkloads() const {
    constexpr std::array<std::size_t, 8> kBatches{1, 4, 16, 64, 128, 256, 512, 1'024};
    constexpr std::size_t kFilteredRowsForOne = 20;
    std::vector<Workload> workloads;
    for (std::size_t i = 0; i < task_.collections.size(); ++i) {
      workloads.push_back({i, 1, kFilteredRowsForOne});
      for (const std::size_t batch : kBatches) {
        if (batch <= task_.batch_max) workloads.push_back({i, batch, 0});
      }
    }
    // The shortest first: what there is no time for is then the least.
    std::ranges::stable_sort(workloads, {}, &Workload::batch);
    return workloads;
  }

  // Compares before with after; while a kind of search is slower, takes the least change back.
  void CompareAll(const std::vector<Parameter>& parameters) {
    in_search_ = false;
    for (;;) {
      CompareOnce();
      const bool slower = std::ranges::any_of(better_.workloads, [](const TunedWorkload& each) {
        return each.ratio && IsSlower(*each.ratio);
      });
      if (!slower || better_.after == task_.before) return;
      Withdraw(parameters);
    }
  }

  void CompareOnce() {
    better_.workloads.clear();
    const std::vector<Workload> workloads = ServiceWorkloads();
    const bool changed = better_.after != task_.before;
    const Clock::TimePoint until =
        clock_.Now() + PartOf(end_ - clock_.Now(), changed ? kComparisonShare : 1);
    for (std::size_t i = 0; i < workloads.size(); ++i) {
      Report(fmt::format("{}, {}", changed ? "before and after" : "times",
                         WorkloadText(workloads[i], task_.collections)));
      TunedWorkload compared;
      compared.workload = workloads[i];
      const Clock::TimePoint now = clock_.Now();
      const Clock::Duration slice = (until - now) / static_cast<int>(workloads.size() - i);
      compared.ratio = Compare(better_.after, task_.before, workloads[i], now + slice, &compared);
      better_.workloads.push_back(std::move(compared));
    }
  }

  void LeaveAllIfBusy() {
    better_.other_load = std::max(better_.other_load, probe_.OtherLoad());
    if (!better_.is_busy() || better_.after == task_.before) return;
    better_.after = task_.before;
    for (TunedParameter& parameter : better_.parameters) {
      if (parameter.is_changed()) TakeBack(parameter, TuneConclusion::kBusy);
    }
    for (TunedWorkload& each : better_.workloads) {
      each.after_s = each.before_s;
      each.ratio.reset();
    }
  }

  static void TakeBack(TunedParameter& parameter, TuneConclusion why) {
    parameter.after = parameter.before;
    parameter.conclusion = why;
    parameter.ratio.reset();
  }

  // Takes back the change with the least gain; all of them when there is no time to compare again.
  void Withdraw(const std::vector<Parameter>& parameters) {
    const bool all = clock_.Now() >= end_;
    const TunedParameter* least = nullptr;
    for (const TunedParameter& parameter : better_.parameters) {
      if (!parameter.is_changed()) continue;
      if (least == nullptr || parameter.ratio->median > least->ratio->median) least = &parameter;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      TunedParameter& parameter = better_.parameters[i];
      if (!parameter.is_changed() || !(all || &parameter == least)) continue;
      parameters[i].Set(better_.after, parameter.before);
      TakeBack(parameter, TuneConclusion::kWithdrawn);
    }
  }

  const TuneTask& task_;
  TuneProbe& probe_;
  const Clock& clock_;
  const TuneProgress& progress_;
  const Clock::TimePoint start_;
  const Clock::TimePoint search_end_;
  const Clock::TimePoint end_;
  Clock::TimePoint parameter_end_;  // of the parameter being tuned
  bool in_search_ = true;
  BetterTuning better_;
};

}  // namespace

bool IsBetter(const RatioRange& ratio) { return ratio.high < 1 - kBetterShare; }
bool IsSlower(const RatioRange& ratio) { return ratio.low > 1 && ratio.median > 1 + kSlowerShare; }

BetterTuning FindBetterTuning(const TuneTask& task, TuneProbe& probe, const Clock& clock,
                              const TuneProgress& progress) {
  return TuningSearch(task, probe, clock, progress).Run();
}

std::optional<SufficientRate> SufficientBatch(std::span<const TunedWorkload> workloads,
                                              std::size_t collection, double share) {
  std::vector<BatchRate> rates;
  for (const TunedWorkload& each : workloads) {
    const bool counts = each.workload.collection == collection && each.workload.rows_for_one == 0;
    if (!counts || each.after_s <= 0) continue;
    rates.push_back({each.workload.batch, each.after_s,
                     static_cast<double>(each.workload.batch) / each.after_s});
  }
  if (rates.empty()) return std::nullopt;
  std::ranges::sort(rates, {}, &BatchRate::batch);
  const double best =
      std::ranges::max(rates, {}, &BatchRate::queries_per_second).queries_per_second;
  return SufficientRate{
      *std::ranges::find_if(
          rates, [&](const BatchRate& rate) { return rate.queries_per_second >= share * best; }),
      rates.back()};
}

std::string WorkloadText(const Workload& workload, std::span<const TunedShape> collections) {
  const std::string filter =
      workload.rows_for_one > 0
          ? fmt::format(", one row in {} passes", base::Grouped(workload.rows_for_one))
          : "";
  return fmt::format(
      "{}, {}{}", collections[workload.collection].name,
      workload.batch == 1 ? "1 query" : fmt::format("{} queries", base::Grouped(workload.batch)),
      filter);
}

}  // namespace simile::app
