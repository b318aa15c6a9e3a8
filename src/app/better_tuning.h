#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/cpu/int8_tuning.h"
#include "backend/cpu/tuning_decisions.h"
#include "simile/clock.h"

// Which parameters make the CPU engine faster on given collections: what `simile tune` measures and
// what it concludes. Has no clock, engine or data of its own.
namespace simile::app {

// What the CPU engine runs with, as far as `simile tune` may change it.
struct EngineSetup {
  unsigned threads = 1;
  backend::cpu::Int8Tuning tuning;

  friend bool operator==(const EngineSetup&, const EngineSetup&) = default;
};

// Searches of one kind.
struct Workload {
  std::size_t collection = 0;    // index
  std::size_t batch = 1;         // queries at once
  std::size_t rows_for_one = 0;  // a filter passes one row in this many; 0: no filter

  friend bool operator==(const Workload&, const Workload&) = default;
};

// A collection as far as it matters for what to measure.
struct TunedShape {
  std::string name;
  std::size_t row_count = 0;   // that are measured: the first ones
  std::size_t code_bytes = 0;  // of these, a byte a dimension, padding included
  std::size_t rows_total = 0;
  std::size_t dim = 0;
};

// Measures. Tests implement it without a clock.
class TuneProbe {
 public:
  virtual ~TuneProbe() = default;

  // Times `count` pairs of searches right after each other, the first with one setup, the second
  // with the other, on the same queries. Fewer or none when `until` comes first or memory runs out.
  virtual std::vector<backend::cpu::TimePair> TimeInTurn(const EngineSetup& first,
                                                         const EngineSetup& second,
                                                         const Workload& workload,
                                                         std::size_t count,
                                                         Clock::TimePoint until) = 0;
  // The share of the processors' time that other programs took since the last call, 0 .. 1.
  virtual double OtherLoad() = 0;
};

// What to tune, and for how long.
struct TuneTask {
  EngineSetup before;
  std::vector<TunedShape> collections;
  unsigned threads_usable = 1;
  bool threads_free = true;     // false: the configuration sets them
  bool kernels_differ = false;  // two kernels to choose from
  bool int4_possible = false;   // the small kernel reads int4, and the configuration allows it
  std::size_t batch_max = 1;    // queries at once
  Clock::Duration duration{};
};

// Better means: by at least this share, with the whole interval of RatioRange. Slower means: by at
// least that share, with an interval that excludes equality.
inline constexpr double kBetterShare = 0.02;
inline constexpr double kSlowerShare = 0.01;
bool IsBetter(const backend::cpu::RatioRange& ratio);
bool IsSlower(const backend::cpu::RatioRange& ratio);
// Above this share of other programs' load everything is left as it was: threads that wait for
// others make one strategy slower than another, which says nothing about a quiet machine.
inline constexpr double kOtherLoadMax = 0.1;

// Why a parameter is as it is now.
enum class TuneConclusion : std::uint8_t {
  kChanged,
  kNoneBetter,  // every neighbour was measured
  kNoChoice,    // it changes nothing for these collections on this processor
  kFixed,       // the configuration sets it
  kBusy,        // a better one was found while other programs used the processors
  kWithdrawn,   // better for one kind of search, but another became slower
  kNoTime,
};

// One parameter, before and after.
struct TunedParameter {
  const backend::cpu::TuningValue* value = nullptr;  // null: the threads
  std::size_t before = 0;
  std::size_t after = 0;
  TuneConclusion conclusion = TuneConclusion::kNoTime;
  // Of a changed parameter: the time after to the time before where it gained most, measured afresh
  // once the parameter was chosen.
  std::optional<backend::cpu::RatioRange> ratio;
  Workload workload;

  const char* name() const { return value != nullptr ? value->name : "threads"; }
  const char* unit() const { return value != nullptr ? value->unit : "threads"; }
  bool is_changed() const { return conclusion == TuneConclusion::kChanged; }
};

// One kind of search with all parameters before and all parameters after.
struct TunedWorkload {
  Workload workload;
  double before_s = 0;  // of one batch, the median; 0: not measured
  double after_s = 0;
  // After to before; none when time ran out or the machine was busy.
  std::optional<backend::cpu::RatioRange> ratio;
};

struct BetterTuning {
  EngineSetup after;
  std::vector<TunedParameter> parameters;
  std::vector<TunedWorkload> workloads;
  double other_load = 0;  // the most during a part of the measurements

  bool is_changed() const { return std::ranges::any_of(parameters, &TunedParameter::is_changed); }
  bool is_busy() const { return other_load > kOtherLoadMax; }
};

// Changes one parameter after the other to a neighbouring value while that makes some kind of
// search faster and none slower, twice in a row; then compares everything before with everything
// after and takes the least changes back until no kind of search is slower. On a busy machine
// changes nothing.
//   progress  called with the share that is done and what is being measured; may be empty
using TuneProgress = std::function<void(double share, const std::string& what)>;
BetterTuning FindBetterTuning(const TuneTask& task, TuneProbe& probe, const Clock& clock,
                              const TuneProgress& progress);

// Of the batches measured without a filter the smallest that reaches `share` of the best rate of
// queries, and the largest; nothing without measurements.
struct BatchRate {
  std::size_t batch = 1;
  double seconds = 0;  // of the batch
  double queries_per_second = 0;
};
inline constexpr double kSufficientShare = 0.95;  // of the best rate, for what is recommended
struct SufficientRate {
  BatchRate sufficient;
  BatchRate largest;
};
std::optional<SufficientRate> SufficientBatch(std::span<const TunedWorkload> workloads,
                                              std::size_t collection, double share);

// `films, 64 queries` or `films, 1 query, one row in 16 passes`
std::string WorkloadText(const Workload& workload, std::span<const TunedShape> collections);

}  // namespace simile::app
