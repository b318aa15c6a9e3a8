#include "app/tuning/tune.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "app/config/config_check.h"
#include "app/gpu/fault_journal.h"
#include "app/tuning/collection_probe.h"
#include "app/tuning/gpu_choice_file.h"
#include "app/tuning/processor_load.h"
#include "backend/cpu/calibration.h"
#include "base/error_detail.h"
#include "base/message_text.h"
#include "base/threads.h"
#include "data/load/load.h"
#include "engine/snapshots/memory_plan.h"

namespace simile::app {
namespace {

using backend::cpu::Int8Options;

constexpr std::size_t kAnswersCompared = 1'000;  // of each collection
// The part of the time for searches on the CPU. Answers are compared in the rest.
constexpr double kSearchShare = 0.9;

absl::Status WithFolder(const CollectionConfig& collection, const absl::Status& error) {
  return base::WithMessage(error, LoadErrorText(collection, error));
}

// Whether the collections and their indexes fit into the memory that is free now.
absl::Status CheckMemory(const std::vector<data::DatasetPlan>& plans, const Limits& limits,
                         const CollectionProbe::Options& options) {
  Int8Options largest = options.engine;
  largest.tuning.int4_from_code_bytes = 0;
  std::uint64_t needed = 0;
  for (const data::DatasetPlan& plan : plans) {
    const absl::StatusOr<engine::DataBytes> data = engine::PlanData(plan, limits);
    if (!data.ok()) return data.status();
    const std::size_t rows =
        CollectionProbe::RowsToMeasure(options, plans.size(), plan.row_count, plan.dim);
    const ResidentPlan index = backend::cpu::PlanInt8(largest, {rows, plan.dim, plan.files.metric});
    needed +=
        data->total() + CollectionProbe::kEnginesMax * index.host_bytes + index.host_build_bytes;
  }
  const absl::StatusOr<engine::HostMemory> memory = engine::ReadHostMemory();
  if (!memory.ok()) return memory.status();
  const std::uint64_t free = engine::MayBeTaken(*memory);
  if (needed <= free) return absl::OkStatus();
  return base::Error(
      base::ErrorReason::kDoesNotFit,
      fmt::format("the collections need {} to be measured, and {} are free (nine tenths of what is "
                  "{}); measure where no server runs, or a part of the rows",
                  base::BytesText(needed), base::BytesText(free), memory->origin));
}

absl::StatusOr<std::vector<TunedCollection>> LoadAll(const Config& config,
                                                     const CollectionProbe::Options& options,
                                                     const TuneProgress& progress) {
  std::vector<data::DatasetPlan> plans;
  for (const CollectionConfig& collection : config.collections) {
    auto plan = data::PlanDataset(collection.folder, config.limits);
    if (!plan.ok()) return WithFolder(collection, plan.status());
    plans.push_back(*std::move(plan));
  }
  if (absl::Status fits = CheckMemory(plans, config.limits, options); !fits.ok()) return fits;
  std::vector<TunedCollection> loaded;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const CollectionConfig& collection = config.collections[i];
    auto dataset = data::LoadDataset(plans[i], config.limits, [&](const data::ReadProgress& read) {
      if (!progress) return;
      const auto total = static_cast<double>(std::max<std::uint64_t>(1, read.bytes_total));
      progress(0, fmt::format("reading {}, {:.0f} %", collection.name,
                              100 * static_cast<double>(read.bytes_read) / total));
    });
    if (!dataset.ok()) return WithFolder(collection, dataset.status());
    loaded.push_back({collection.name, std::move(dataset->vectors), dataset->metric});
  }
  return loaded;
}

// The numbers of threads to compare with the number in force. The number in force alone where there
// is no choice.
std::vector<unsigned> ThreadsToTry(const Config& config, unsigned in_force) {
  std::vector<unsigned> numbers;
  if (config.backend.threads == 0) numbers = OtherThreads(base::UsableCpuCount(), in_force);
  if (numbers.empty()) numbers.push_back(in_force);
  return numbers;
}

// Times the searches of ServiceWorkloads with the threads in force and, in turn, with each number.
BetterTuning MeasureThreads(CollectionProbe& probe, const EngineSetup& before,
                            const std::vector<unsigned>& numbers, const TuneOptions& options,
                            const Clock& clock, const TuneProgress& progress) {
  const std::vector<Workload> workloads =
      ServiceWorkloads(probe.shapes().size(), options.batch_max);
  const Clock::TimePoint start = clock.Now();
  const Clock::Duration searching =
      std::chrono::duration_cast<Clock::Duration>(options.duration * kSearchShare);
  std::size_t left = numbers.size() * workloads.size();
  std::vector<TriedThreads> tried;
  ProcessorLoad load;
  double other_load = 0;
  for (const unsigned threads : numbers) {
    TriedThreads& timed = tried.emplace_back();
    timed.threads = threads;
    for (const Workload& workload : workloads) {
      const Clock::Duration passed = clock.Now() - start;
      if (progress) {
        const double share = std::chrono::duration<double>(passed) / options.duration;
        progress(std::min(share, 1.0), fmt::format("{}, {}", WorkloadText(workload, probe.shapes()),
                                                   base::Counted(threads, "thread")));
      }
      const Clock::Duration slice = (searching - passed) / static_cast<int>(left--);
      timed.workloads.push_back(probe.TimeInTurn(before, {threads, before.tuning}, workload,
                                                 start + passed + slice, start + searching));
    }
    other_load = std::max(other_load, load.OthersSinceLastCall());
  }
  return ChooseThreads(before.threads, tried, other_load);
}

// The GPU's part of the time for all measurements.
Clock::Duration PlanGpuTime(Clock::Duration duration) { return duration / 4; }

GpuChoiceFile ChoiceFileAt(const std::filesystem::path& file, const Config& config) {
  return {file, DriverFor(config.backend.preference), std::nullopt};
}

GpuRates MeasureConfiguredGpu(const Config& config, const TuneOptions& options,
                              std::span<const TunedCollection> collections, const Clock& clock,
                              const TuneProgress& progress) {
  constexpr std::chrono::milliseconds kChoiceTime{2'000};  // for each collection
  GpuChoiceFile known = ChoiceFileAt(config.tuning_cache, config);
  GpuRatesTask task{.backend = config.backend,
                    .k = options.k,
                    .batch_max = options.batch_max,
                    .duration = PlanGpuTime(options.duration),
                    .known = &known};
  task.backend.gpu.choice_time = kChoiceTime;
  if (!config.gpu_fault_journal.empty()) {
    auto faults = ReadFaultJournal(config.gpu_fault_journal);
    if (faults.ok()) task.backend.gpu_faults = *std::move(faults);
  }
  return MeasureGpu(task, collections, clock, progress);
}

// Sets the sufficient batches that a later load may read, if passes as large as serve's were timed
// on a quiet machine. Else the known batches stay.
void SetSufficientBatches(const Config& config, const TuneOptions& options, TuneReport& report) {
  const std::uint32_t of_serve = std::min(TuneOptions{}.batch_max, config.limits.batch_queries_max);
  if (options.batch_max < of_serve || report.tuning.is_busy()) return;
  for (GpuCollectionRates& each : report.gpu.collections) {
    if (each.measured) each.measured->choices.sufficient_batch = each.sufficient_batch;
  }
}

// The measured choices that the file does not hold yet.
std::vector<backend::MeasuredChoices> ToKeep(const GpuRates& rates, GpuChoiceFile& file) {
  std::vector<backend::MeasuredChoices> kept;
  for (const GpuCollectionRates& each : rates.collections) {
    if (!each.measured) continue;
    if (file.Read(each.measured->key) != each.measured->choices) kept.push_back(*each.measured);
  }
  return kept;
}

// The names of both lists, each once.
std::vector<std::string> Union(std::vector<std::string> names,
                               const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace

absl::StatusOr<TuneReport> TuneCollections(const Config& config, const TuneOptions& options,
                                           const Clock& clock, const TuneProgress& progress) {
  if (!options.output.empty()) {
    const absl::Status writable = CheckTuningCacheWritable(options.output);
    if (!writable.ok()) return writable;
  }
  absl::StatusOr<MeasuredTuning> measured = MeasureTuning(config, backend::cpu::Calibrate, clock);
  if (!measured.ok()) return measured.status();
  const TuningInForce in_force = ResolveTuning(config, *measured);
  const auto engine = backend::MakeCpuOptions(in_force.Over(config.backend));
  if (!engine.ok()) return engine.status();
  const EngineSetup before{engine->threads, engine->tuning};

  const CollectionProbe::Options probed{
      .engine = *engine, .k = options.k, .batch_max = options.batch_max};
  auto collections = LoadAll(config, probed, progress);
  if (!collections.ok()) return collections.status();
  TuneReport report;
  report.gpu = MeasureConfiguredGpu(config, options, *collections, clock, progress);
  report.key = measured->key;
  std::vector<std::string> names;
  for (const TunedCollection& each : *collections) names.push_back(each.name);
  auto probe = CollectionProbe::Create(*std::move(collections), probed, clock);
  if (!probe.ok()) return probe.status();
  report.collections = (*probe)->shapes();
  TuneOptions on_cpu = options;
  if (!report.gpu.device.empty()) on_cpu.duration -= PlanGpuTime(options.duration);
  report.tuning = MeasureThreads(**probe, before, ThreadsToTry(config, before.threads), on_cpu,
                                 clock, progress);
  const EngineSetup after{report.tuning.threads_after, before.tuning};
  if (after != before) {
    if (progress) progress(1, "comparing answers");
    const auto compared = (*probe)->CompareAnswers(after, before, kAnswersCompared);
    if (!compared.ok()) return compared.status();
    report.answers_compared = *compared;
  }
  MeasuredTuning kept = *std::move(measured);
  if (report.tuning.is_changed()) {
    kept = WithThreads(std::move(kept), after.threads, names, FormatDate(clock.WallNow()));
  }
  report.in_force = ResolveTuning(config, kept);
  SetSufficientBatches(config, options, report);
  if (options.output.empty()) return report;
  GpuChoiceFile choice_file = ChoiceFileAt(options.output, config);
  if (const auto passes = ToKeep(report.gpu, choice_file); !passes.empty()) {
    const absl::Status written = choice_file.WriteEntries(passes);
    if (!written.ok()) return written;
    report.written = true;
  }
  const auto held = ReadTuningCache(options.output, kept.key);
  if (held.ok() && *held == kept) return report;
  const absl::Status written = WriteTuningCache(options.output, kept);
  if (!written.ok()) return written;
  report.written = true;
  return report;
}

MeasuredTuning WithThreads(MeasuredTuning measured, unsigned threads,
                           const std::vector<std::string>& collections, const std::string& date) {
  TunedFindings tuned = measured.tuned.value_or(TunedFindings());
  tuned.date = date;
  tuned.collections = Union(std::move(tuned.collections), collections);
  tuned.threads.reset();
  if (threads < measured.key.threads) tuned.threads = threads;
  measured.tuned = std::move(tuned);
  return measured;
}

}  // namespace simile::app
