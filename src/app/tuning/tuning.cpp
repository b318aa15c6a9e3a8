#include "app/tuning/tuning.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/message_text.h"

namespace simile::app {
namespace {

using backend::cpu::Int8Options;
using backend::cpu::TuningFindings;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;

// The origin of the number of threads when `simile tune` did not choose it.
std::string ThreadsOrigin(const Config& config) {
  return config.backend.threads > 0 ? "backend.threads" : "every core this process may use";
}

TuningInForce Defaults(const Config& config, const std::string& origin) {
  TuningInForce in_force;
  in_force.origins.assign(TuningValues().size(), origin);
  const auto options = backend::MakeCpuOptions(config.backend);
  if (options.ok()) in_force.threads = options->threads;
  in_force.threads_origin = ThreadsOrigin(config);
  return in_force;
}

// Whether the findings of `simile tune` are in force. They are not where tune chose the number of
// threads and the configuration sets it, because all findings were made with tune's number.
bool UsesTuned(const Config& config, const MeasuredTuning& measured) {
  return measured.tuned && (config.backend.threads == 0 || !measured.tuned->threads);
}

// "Intel(R) Xeon(R) Processor, 2 threads, amx+avx512vnni"
std::string MachineText(const TuningKey& key) {
  return fmt::format("{}, {}, {}", key.cpu, base::Counted(key.threads, "thread"), key.kernels);
}

// A GPU has the CPU as its fallback, so the preference does not matter.
bool UsesTuning(const Config& config) {
  return config.tuning == Tuning::kAuto && config.backend.cpu_engine == backend::CpuEngine::kInt8;
}

// Whether another calibration would find nothing more: the cache size never changes, and a single
// kernel leaves nothing to choose.
bool IsComplete(const TuningFindings& findings, const Int8Options& options) {
  return (findings.large_batch_min || options.large == options.small) && findings.gather_share &&
         findings.scan_rows_max;
}

// Merges findings. The findings `over` replace the findings `below`.
TuningFindings Merged(TuningFindings over, const TuningFindings& below) {
  for (const TuningValue& value : TuningValues()) {
    if (!(over.*value.found)) over.*value.found = below.*value.found;
  }
  return over;
}

// The cache's content for this machine, completed: a busy machine collects its findings over
// several starts.
struct Completed {
  MeasuredTuning measured;
  bool now = false;  // something was measured, and the cache does not hold it
  Clock::Duration took{};
};
Completed ReadAndMeasure(const Config& config, const Int8Options& options, const Measure& measure,
                         const Clock& clock) {
  Completed completed{{MakeTuningKey(options), "", {}, std::nullopt}};
  if (!config.tuning_cache.empty()) {
    auto read = ReadTuningCache(config.tuning_cache, completed.measured.key);
    if (read.ok()) completed.measured = *std::move(read);
    if (IsComplete(completed.measured.findings, options)) return completed;
  }
  const Clock::TimePoint start = clock.Now();
  completed.measured.findings = Merged(measure(options), completed.measured.findings);
  completed.measured.date = FormatDate(clock.WallNow());
  completed.now = true;
  completed.took = clock.Now() - start;
  return completed;
}

}  // namespace

std::string FormatDate(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::string TuningText(const TuningValue& value, std::size_t number) {
  return value.max_is_never && number >= value.max ? "never" : base::Grouped(number);
}

backend::RegistryOptions TuningInForce::Over(backend::RegistryOptions options) const {
  options.tuning = tuning;
  if (threads > 0) options.threads = threads;
  return options;
}

TuningInForce ResolveTuning(const Config& config, const MeasuredTuning& measured) {
  const bool uses_tuned = UsesTuned(config, measured);
  const TuningFindings tuned = uses_tuned ? measured.tuned->findings : TuningFindings();
  const std::string machine = MachineText(measured.key);
  const std::string calibrated = fmt::format("measured {} on {}", measured.date, machine);
  const std::string chosen =
      uses_tuned ? fmt::format("tuned {} for {} on {}", measured.tuned->date,
                               fmt::join(measured.tuned->collections, ", "), machine)
                 : "";
  TuningInForce in_force;
  in_force.tuning = backend::cpu::MakeTuning(Merged(tuned, measured.findings));
  for (const TuningValue& value : TuningValues()) {
    const bool was_calibrated = (measured.findings.*value.found).has_value();
    const std::string& below = was_calibrated ? calibrated : "default";
    in_force.origins.push_back((tuned.*value.found).has_value() ? chosen : below);
  }
  in_force.threads = measured.key.threads;
  in_force.threads_origin = ThreadsOrigin(config);
  if (uses_tuned && measured.tuned->threads) {
    in_force.threads = *measured.tuned->threads;
    in_force.threads_origin = chosen;
  }
  return in_force;
}

TuningInForce KnownTuning(const Config& config) {
  if (!UsesTuning(config)) return Defaults(config, "default");
  const auto options = backend::MakeCpuOptions(config.backend);
  if (!options.ok()) return Defaults(config, "default");
  if (config.tuning_cache.empty()) return Defaults(config, "not measured yet; each serve measures");
  const auto read = ReadTuningCache(config.tuning_cache, MakeTuningKey(*options));
  if (read.ok()) return ResolveTuning(config, *read);
  TuningInForce in_force = Defaults(config, "not measured yet; the first serve measures");
  if (!absl::IsNotFound(read.status())) in_force.cache = read.status();
  return in_force;
}

absl::StatusOr<MeasuredTuning> MeasureTuning(const Config& config, const Measure& measure,
                                             const Clock& clock) {
  if (!UsesTuning(config)) {
    return absl::FailedPreconditionError(
        config.tuning == Tuning::kAuto
            ? "backend.cpu_engine is scan, which has nothing to tune; int8 has"
            : "backend.tuning is defaults, so serve would not use what is measured; auto does");
  }
  const auto options = backend::MakeCpuOptions(config.backend);
  if (!options.ok()) return options.status();
  return ReadAndMeasure(config, *options, measure, clock).measured;
}

TuningInForce EnsureTuning(const Config& config, const Measure& measure, const Clock& clock) {
  if (!UsesTuning(config)) return Defaults(config, "default");
  const auto options = backend::MakeCpuOptions(config.backend);
  // ChooseBackend reports what is wrong with the options.
  if (!options.ok()) return Defaults(config, "default");
  const Completed completed = ReadAndMeasure(config, *options, measure, clock);
  TuningInForce in_force = ResolveTuning(config, completed.measured);
  if (!completed.now) return in_force;
  in_force.measured = true;
  in_force.complete = IsComplete(completed.measured.findings, *options);
  in_force.took = completed.took;
  if (!config.tuning_cache.empty()) {
    in_force.cache = WriteTuningCache(config.tuning_cache, completed.measured);
  }
  return in_force;
}

}  // namespace simile::app
