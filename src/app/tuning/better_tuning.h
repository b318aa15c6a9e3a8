#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// What `simile tune` concludes from times of searches: the number of threads, and the batch that
// suffices. Pure.
namespace simile::app {

// Searches of one kind.
struct Workload {
  std::size_t collection = 0;    // index
  std::size_t batch = 1;         // queries at once
  std::size_t rows_for_one = 0;  // a filter passes one row in this many; 0: no filter

  friend bool operator==(const Workload&, const Workload&) = default;
};

// One kind of search with both numbers of threads. A time is 0 where it was not measured.
struct TimedWorkload {
  Workload workload;
  double before_s = 0;  // of one batch, the median
  double after_s = 0;
};

struct TunedShape {
  std::string name;
  std::size_t row_count = 0;  // the rows that are measured: the first ones
  std::size_t rows_total = 0;
  std::size_t dim = 0;
};

// `films, 64 queries` or `films, 1 query, filter 1 in 16` (a filter that one row in 16 passes)
std::string WorkloadText(const Workload& workload, std::span<const TunedShape> collections);

// The kinds of search that a server answers, the shortest first. When time runs out the longest are
// not measured.
std::vector<Workload> ServiceWorkloads(std::size_t collection_count, std::size_t batch_max);

// One to four quarters of the usable threads, the most threads first, without the number in force.
std::vector<unsigned> OtherThreads(unsigned threads_usable, unsigned in_force);

// A number of threads that was tried. In its workloads before_s is measured with the threads in
// force, after_s with `threads`.
struct TriedThreads {
  unsigned threads = 1;
  std::vector<TimedWorkload> workloads;
};

// Another number of threads is better when it saves at least this share of the time, in the
// geometric mean over all kinds of search. No kind of search may take longer by more than
// kSearchLossMax.
inline constexpr double kThreadsGainMin = 0.05;
inline constexpr double kSearchLossMax = 0.02;
// Above this share of other programs' load the number of threads stays: times on a busy machine say
// nothing about a quiet one.
inline constexpr double kOtherLoadMax = 0.1;

// Why the number of threads is what it is now.
enum class ThreadsConclusion : std::uint8_t {
  kChanged,
  kNoneBetter,
  kNoChoice,  // the configuration sets the number, or there is one usable thread
  kBusy,
  kNoTime,  // some number of threads was not measured in every kind of search
};

struct BetterTuning {
  unsigned threads_before = 1;
  unsigned threads_after = 1;
  ThreadsConclusion conclusion = ThreadsConclusion::kNoChoice;
  std::vector<TimedWorkload> workloads;  // with the threads before and after
  double other_load = 0;                 // the most during a part of the measurements

  bool is_changed() const { return conclusion == ThreadsConclusion::kChanged; }
  bool is_busy() const { return other_load > kOtherLoadMax; }
};

// Chooses the best number of threads among the numbers that are better than the number in force. In
// doubt the number in force stays.
//   tried  not empty; the number in force alone where there is no choice
BetterTuning ChooseThreads(unsigned in_force, const std::vector<TriedThreads>& tried,
                           double other_load);

// The smallest batch that reaches this share of the best rate of queries, with the threads after.
// Looks at the searches of one collection without a filter; 0 where none was measured.
inline constexpr double kSufficientShare = 0.95;
std::size_t SufficientBatch(std::span<const TimedWorkload> workloads, std::size_t collection);

}  // namespace simile::app
