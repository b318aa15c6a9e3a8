#include "app/tuning/gpu_rates.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/tuning/better_tuning.h"

namespace simile::app {
namespace {

using backend::GpuChoices;
using backend::GpuSegmentKey;
using backend::MeasuredChoices;

constexpr std::size_t kRunsMin = 3;
constexpr std::size_t kRunsMax = 200;

// Keeps the measurements of a load in memory.
class RecordingStore final : public backend::GpuChoiceStore {
 public:
  explicit RecordingStore(GpuChoiceStore* known) : known_(known) {}

  GpuChoices Read(const GpuSegmentKey& key) override {
    recorded_ = MeasuredChoices{key, known_ != nullptr ? known_->Read(key) : GpuChoices()};
    return recorded_->choices;
  }
  void Write(const GpuSegmentKey& key, const GpuChoices& choices) override {
    recorded_ = MeasuredChoices{key, choices};
  }

  std::optional<MeasuredChoices> MoveRecorded() { return std::exchange(recorded_, std::nullopt); }

 private:
  GpuChoiceStore* const known_;
  std::optional<MeasuredChoices> recorded_;
};

// Times one batch: at least kRunsMin runs, then until the time is over.
//   result  of the last run
absl::StatusOr<GpuRate> TimeBatch(const SegmentIndex& index, const SearchBatch& batch,
                                  Clock::Duration time, const Clock& clock, SearchResult& result) {
  // The first runs load code and capture graphs.
  for (int i = 0; i < 2; ++i) {
    if (absl::Status status = index.Search(batch, result); !status.ok()) return status;
  }
  std::vector<double> seconds;
  const Clock::TimePoint end = clock.Now() + time;
  const auto needs_more = [&] {
    return seconds.size() < kRunsMin || (clock.Now() < end && seconds.size() < kRunsMax);
  };
  while (needs_more()) {
    const Clock::TimePoint began = clock.Now();
    if (absl::Status status = index.Search(batch, result); !status.ok()) return status;
    seconds.push_back(std::chrono::duration<double>(clock.Now() - began).count());
  }
  const auto median = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, median);
  return GpuRate{static_cast<std::uint32_t>(batch.specs.size()), *median, result.Engine(0)};
}

absl::StatusOr<GpuCollectionRates> MeasureCollection(const GpuRatesTask& task, Backend& gpu,
                                                     RecordingStore& store,
                                                     const TunedCollection& collection,
                                                     const Clock& clock,
                                                     const TuneProgress& progress) {
  GpuCollectionRates found;
  found.name = collection.name;
  const MatrixView rows = collection.vectors.view();
  const auto index = gpu.MakeResident({rows, nullptr, collection.metric, 0});
  if (!index.ok()) return index.status();
  found.measured = store.MoveRecorded();
  auto queries = QueriesLike(rows, collection.metric, task.batch_max);
  if (!queries.ok()) return queries.status();
  QuerySpec spec;
  spec.k = task.k;
  const std::vector<QuerySpec> specs(task.batch_max, spec);
  const int batches = std::bit_width(task.batch_max);
  std::vector<TimedWorkload> workloads;
  SearchResult result;
  for (std::uint32_t count = 1; count <= task.batch_max; count *= 2) {
    if (progress) progress(0, fmt::format("{} on the GPU, batches of {}", collection.name, count));
    auto rate = TimeBatch(**index, {queries->view().Slice(0, count), std::span(specs).first(count)},
                          task.duration / batches, clock, result);
    if (!rate.ok()) return rate.status();
    if (result.fallback() != nullptr) {
      found.why_not = result.fallback()->reason;
      found.rates.clear();
      found.measured.reset();
      return found;
    }
    workloads.push_back({{0, count, 0}, rate->seconds, rate->seconds});
    found.rates.push_back(*std::move(rate));
  }
  const std::size_t sufficient = SufficientBatch(workloads, 0);
  if (sufficient < workloads.back().workload.batch) {
    found.sufficient_batch = static_cast<std::uint32_t>(sufficient);
  }
  return found;
}

}  // namespace

GpuRates MeasureGpu(const GpuRatesTask& task, std::span<const TunedCollection> collections,
                    const Clock& clock, const TuneProgress& progress) {
  RecordingStore store(task.known);
  backend::RegistryOptions options = task.backend;
  options.gpu.clock = &clock;
  options.gpu.choice_store = &store;
  GpuRates rates;
  const auto chosen = backend::ChooseBackend(options);
  if (!chosen.ok() || chosen->gpu_bus_id.empty()) {
    rates.why_not = chosen.ok() ? chosen->reason : std::string(chosen.status().message());
    return rates;
  }
  rates.device = chosen->backend->info().device;
  GpuRatesTask of_each = task;
  of_each.duration = task.duration / std::max<std::size_t>(1, collections.size());
  for (const TunedCollection& collection : collections) {
    auto found = MeasureCollection(of_each, *chosen->backend, store, collection, clock, progress);
    if (found.ok()) {
      rates.collections.push_back(*std::move(found));
      continue;
    }
    GpuCollectionRates& failed = rates.collections.emplace_back();
    failed.name = collection.name;
    failed.why_not = std::string(found.status().message());
  }
  return rates;
}

}  // namespace simile::app
