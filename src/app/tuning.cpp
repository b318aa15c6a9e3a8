#include "app/tuning.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "app/tuning_cache.h"
#include "base/message_text.h"

namespace simile::app {
namespace {

using backend::cpu::Int8Options;
using backend::cpu::TuningFindings;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;

TuningInForce Defaults(const std::string& origin) {
  TuningInForce in_force;
  in_force.origins.assign(TuningValues().size(), origin);
  return in_force;
}

TuningInForce FromMeasurement(const MeasuredTuning& measured) {
  TuningInForce in_force;
  in_force.tuning = TuningOf(measured.findings);
  const std::string origin =
      fmt::format("measured {} on {}, {}, {}", measured.date, measured.key.cpu,
                  base::Counted(measured.key.threads, "thread"), measured.key.kernels);
  for (const TuningValue& value : TuningValues()) {
    in_force.origins.push_back((measured.findings.*value.found).has_value() ? origin : "default");
  }
  return in_force;
}

// A GPU has the CPU as its fallback, so the preference does not matter.
bool UsesTuning(const Config& config) {
  return config.tuning == Tuning::kAuto && config.backend.cpu_engine == backend::CpuEngine::kInt8;
}

// Whether another measurement would find nothing more: the cache size never changes, and a single
// kernel leaves nothing to choose.
bool IsComplete(const TuningFindings& findings, const Int8Options& options) {
  return (findings.large_batch_min || options.large == options.small) && findings.gather_share &&
         findings.scan_rows_max;
}

std::string DateOf(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

// The new findings, completed by earlier ones: a busy machine collects them over several starts.
TuningFindings Merged(TuningFindings now, const TuningFindings& before) {
  for (const TuningValue& value : TuningValues()) {
    if (!(now.*value.found)) now.*value.found = before.*value.found;
  }
  return now;
}

}  // namespace

TuningInForce KnownTuning(const Config& config) {
  if (!UsesTuning(config)) return Defaults("default");
  const auto options = backend::CpuOptionsOf(config.backend);
  if (!options.ok()) return Defaults("default");
  if (config.tuning_cache.empty()) return Defaults("not measured yet; each serve measures");
  const auto read = ReadTuningCache(config.tuning_cache, KeyOf(*options));
  if (read.ok()) return FromMeasurement(*read);
  TuningInForce in_force = Defaults("not measured yet; the first serve measures");
  if (!absl::IsNotFound(read.status())) in_force.cache = read.status();
  return in_force;
}

TuningInForce EnsureTuning(const Config& config, const Measure& measure, const Clock& clock) {
  if (!UsesTuning(config)) return Defaults("default");
  const auto options = backend::CpuOptionsOf(config.backend);
  // ChooseBackend reports what is wrong with the options.
  if (!options.ok()) return Defaults("default");
  const TuningKey key = KeyOf(*options);
  TuningFindings before;
  if (!config.tuning_cache.empty()) {
    const auto read = ReadTuningCache(config.tuning_cache, key);
    if (read.ok() && IsComplete(read->findings, *options)) return FromMeasurement(*read);
    if (read.ok()) before = read->findings;
  }
  const Clock::TimePoint start = clock.Now();
  const TuningFindings now = measure(*options);
  const MeasuredTuning measured{key, DateOf(clock.WallNow()), Merged(now, before)};
  TuningInForce in_force = FromMeasurement(measured);
  in_force.measured = true;
  in_force.complete = IsComplete(measured.findings, *options);
  in_force.took = clock.Now() - start;
  if (!config.tuning_cache.empty()) {
    in_force.cache = WriteTuningCache(config.tuning_cache, measured);
  }
  return in_force;
}

}  // namespace simile::app
