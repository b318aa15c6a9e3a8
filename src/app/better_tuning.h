#pragma once

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

// Which numbers make the CPU engine faster on given collections: what `simile tune` measures and
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
  std::size_t row_count = 0;
  std::size_t code_bytes = 0;  // a byte a dimension, padding included
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

// Why a number is as it is now.
enum class TuneConclusion : std::uint8_t {
  kChanged,
  kNoneBetter,  // every neighbour was measured
  kNoChoice,    // it changes nothing for these collections on this processor
  kFixed,       // the configuration sets it
  kBusy,        // a better one was found while other programs used the processors
  kWithdrawn,   // better for one kind of search, but another became slower
  kNoTime,
};

// One number, before and after.
struct TunedNumber {
  std::string name;  // of TuningValues(), or "threads"
  std::string unit;
  std::size_t before = 0;
  std::size_t after = 0;
  TuneConclusion conclusion = TuneConclusion::kNoTime;
  // Of a changed number: the time after to the time before where it gained most, measured afresh
  // once the number was chosen.
  std::optional<backend::cpu::RatioRange> ratio;
  Workload workload;
};

// One kind of search with all numbers before and all numbers after.
struct TunedWorkload {
  Workload workload;
  double before_s = 0;  // of one batch, the median; 0: not measured
  double after_s = 0;
  std::optional<backend::cpu::RatioRange> ratio;  // after to before; none when time ran out
};

struct BetterTuning {
  EngineSetup after;
  std::vector<TunedNumber> numbers;
  std::vector<TunedWorkload> workloads;
  double other_load = 0;  // the most during a part of the measurements
};

// Changes one number after the other to a neighbouring value while that makes some kind of search
// faster and none slower, twice in a row; then compares everything before with everything after and
// takes the least changes back until no kind of search is slower. On a busy machine changes
// nothing.
//   progress  called with the share that is done and what is being measured; may be empty
using TuneProgress = std::function<void(double share, const std::string& what)>;
BetterTuning FindBetterTuning(const TuneTask& task, TuneProbe& probe, const Clock& clock,
                              const TuneProgress& progress);

// The smallest batch of those measured without a filter that reaches `share` of the best rate of
// queries; nothing without measurements.
struct BatchRate {
  std::size_t batch = 1;
  double seconds = 0;  // of the batch
  double queries_per_second = 0;
};
std::optional<BatchRate> SufficientBatch(std::span<const TunedWorkload> workloads,
                                         std::size_t collection, double share);

// `films, 64 queries` or `films, 1 query, one row in 16 passes`
std::string WorkloadText(const Workload& workload, std::span<const TunedShape> collections);

}  // namespace simile::app
