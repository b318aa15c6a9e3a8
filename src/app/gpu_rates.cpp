#include "app/gpu_rates.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error_detail.h"

namespace simile::app {
namespace {

using backend::GpuChoices;
using backend::GpuSegmentKey;

// As the CPU's advice: a batch that reaches this share of the best rate suffices.
constexpr double kSufficientShare = 0.95;
constexpr std::size_t kRunsMin = 3;
constexpr std::size_t kRunsMax = 200;

// Remembers what a load measured instead of writing it.
class Measured final : public backend::GpuChoiceStore {
 public:
  explicit Measured(GpuChoiceStore* known) : known_(known) {}

  GpuChoices Read(const GpuSegmentKey& key) override {
    kept_ = MeasuredChoices{key, known_ != nullptr ? known_->Read(key) : GpuChoices()};
    return kept_->choices;
  }
  void Write(const GpuSegmentKey& key, const GpuChoices& choices) override {
    kept_ = MeasuredChoices{key, choices};
  }

  std::optional<MeasuredChoices> Take() { return std::exchange(kept_, std::nullopt); }

 private:
  GpuChoiceStore* const known_;
  std::optional<MeasuredChoices> kept_;
};

// Times one batch until the time is over, a few times at least.
//   result  of the last run
absl::StatusOr<GpuRate> TimeBatch(const SegmentIndex& index, const SearchBatch& batch,
                                  Clock::Duration time, const Clock& clock, SearchResult& result) {
  // The first runs load code and capture graphs.
  for (int i = 0; i < 2; ++i) {
    if (absl::Status status = index.Search(batch, result); !status.ok()) return status;
  }
  std::vector<double> seconds;
  for (const Clock::TimePoint end = clock.Now() + time;
       seconds.size() < kRunsMin || (clock.Now() < end && seconds.size() < kRunsMax);) {
    const Clock::TimePoint began = clock.Now();
    if (absl::Status status = index.Search(batch, result); !status.ok()) return status;
    seconds.push_back(std::chrono::duration<double>(clock.Now() - began).count());
  }
  const auto median = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, median);
  return GpuRate{static_cast<std::uint32_t>(batch.specs.size()), *median, result.Engine(0)};
}

absl::StatusOr<GpuCollectionRates> MeasureCollection(const GpuRatesTask& task, Backend& gpu,
                                                     Measured& measured,
                                                     const TunedCollection& collection,
                                                     const Clock& clock,
                                                     const TuneProgress& progress) {
  GpuCollectionRates found;
  found.name = collection.name;
  const MatrixView rows = collection.vectors.view();
  const auto index = gpu.MakeResident({rows, nullptr, collection.metric, 0});
  if (!index.ok()) return index.status();
  found.measured = measured.Take();
  auto queries = QueriesLike(rows, collection.metric, task.batch_max);
  if (!queries.ok()) return queries.status();
  QuerySpec spec;
  spec.k = task.k;
  const std::vector<QuerySpec> specs(task.batch_max, spec);
  const int batches = std::bit_width(task.batch_max);
  std::vector<TunedWorkload> workloads;
  SearchResult result;
  for (std::uint32_t count = 1; count <= task.batch_max; count *= 2) {
    const Workload workload{0, count, 0};
    if (progress) {
      progress(0, fmt::format("{} on the GPU, {} at once", collection.name,
                              count == 1 ? "1 query" : fmt::format("{} queries", count)));
    }
    auto rate = TimeBatch(**index, {queries->view().Slice(0, count), std::span(specs).first(count)},
                          task.duration / batches, clock, result);
    if (!rate.ok()) return rate.status();
    if (result.fallback() != nullptr) {
      found.why_not = result.fallback()->reason;
      found.rates.clear();
      return found;
    }
    workloads.push_back({workload, rate->seconds, rate->seconds, std::nullopt});
    found.rates.push_back(*std::move(rate));
  }
  found.queries_of_pass = static_cast<std::uint32_t>(
      SufficientBatch(workloads, 0, kSufficientShare)->sufficient.batch);
  return found;
}

}  // namespace

absl::StatusOr<GpuRates> MeasureGpu(const GpuRatesTask& task,
                                    std::span<const TunedCollection> collections,
                                    const Clock& clock, const TuneProgress& progress) {
  Measured measured(task.known);
  backend::RegistryOptions options = task.backend;
  options.gpu.clock = &clock;
  options.gpu.choice_store = &measured;
  const auto chosen = backend::ChooseBackend(options);
  if (!chosen.ok()) return chosen.status();
  GpuRates rates;
  if (chosen->gpu_bus_id.empty()) {
    rates.why_not = chosen->reason;
    return rates;
  }
  rates.device = chosen->backend->info().device;
  GpuRatesTask of_each = task;
  of_each.duration = task.duration / std::max<std::size_t>(1, collections.size());
  for (const TunedCollection& collection : collections) {
    auto found =
        MeasureCollection(of_each, *chosen->backend, measured, collection, clock, progress);
    if (!found.ok()) {
      return base::WithMessage(found.status(), fmt::format("{}: {}", collection.name,
                                                           std::string(found.status().message())));
    }
    rates.collections.push_back(*std::move(found));
  }
  return rates;
}

}  // namespace simile::app
