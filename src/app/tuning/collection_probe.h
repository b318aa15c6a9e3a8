#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "app/tuning/better_tuning.h"
#include "backend/cpu/int8_backend.h"
#include "backend/cpu/int8_tuning.h"
#include "data/matrix.h"
#include "simile/backend.h"
#include "simile/clock.h"
#include "simile/query.h"
#include "simile/row_mask.h"

namespace simile::app {

// The vectors of a collection to measure on.
struct TunedCollection {
  std::string name;
  data::Matrix vectors;
  Metric metric = Metric::kCosine;
};

// What the CPU engine runs with.
struct EngineSetup {
  unsigned threads = 1;
  backend::cpu::Int8Tuning tuning;

  friend bool operator==(const EngineSetup&, const EngineSetup&) = default;
};

// Makes queries for the rows, [count, dim]: near the data as real queries are, but no row's
// duplicate. Returns the same queries each time.
// Errors: kResourceExhausted without memory for them.
absl::StatusOr<data::Matrix> QueriesLike(MatrixView rows, Metric metric, std::size_t count);

// Measures whole searches of the CPU engine over collections in memory, as the server makes them.
// Keeps the engines of the last two setups with their indexes. Used by one thread.
class CollectionProbe {
 public:
  static constexpr std::size_t kEnginesMax = 2;  // the two that are compared

  struct Options {
    backend::cpu::Int8Options engine;  // kernels; a setup replaces threads and tuning
    std::uint32_t k = 10;
    std::size_t batch_max = 1;  // queries at once
    // The first rows of each collection are measured, with at most this many bytes of codes for all
    // collections together. That bounds memory and exceeds every cache: more rows would not move
    // the points where the strategies cross.
    std::size_t code_bytes_max = 512U << 20;
  };
  // Draws queries from the collections. Errors: kResourceExhausted without memory for them.
  static absl::StatusOr<std::unique_ptr<CollectionProbe>> Create(
      std::vector<TunedCollection> collections, const Options& options, const Clock& clock);

  // How many rows are measured of a collection with `row_count` rows, one of `collection_count`
  // collections.
  static std::size_t RowsToMeasure(const Options& options, std::size_t collection_count,
                                   std::size_t row_count, std::size_t dim);

  const std::vector<TunedShape>& shapes() const { return shapes_; }

  // Times one kind of search with both setups in turn, on the same queries: five rounds, and more
  // until `until`. With equal setups there is one search a round. Both times are 0 when `end` comes
  // before five rounds are over, or memory runs out.
  TimedWorkload TimeInTurn(const EngineSetup& before, const EngineSetup& after,
                           const Workload& workload, Clock::TimePoint until, Clock::TimePoint end);

  // Compares `count` answers of each collection, with and without filters, in batches of several
  // sizes. Returns how many were compared.
  // Errors: kInternal naming the first answer that differs in a row or in a bit of a score; those
  //         of the engine.
  absl::StatusOr<std::size_t> CompareAnswers(const EngineSetup& first, const EngineSetup& second,
                                             std::size_t count);

 private:
  // The engine of a setup, and its index over each collection.
  struct Engine {
    EngineSetup setup;
    std::unique_ptr<Backend> backend;
    std::vector<std::shared_ptr<const SegmentIndex>> indexes;
    SearchResult result;
  };
  // A collection with its queries and filters.
  struct Subject {
    TunedCollection collection;
    data::Matrix queries;
    std::map<std::size_t, RowMask> masks;  // by Workload::rows_for_one
    std::size_t rows = 0;                  // the measured ones, from the first on
  };

  CollectionProbe(const Options& options, const Clock& clock) : options_(options), clock_(clock) {}

  // How a search is timed.
  struct Repeats {
    std::size_t count = 1;   // of the search, for one time
    bool are_short = false;  // then the search runs once before
  };

  // Makes the engine and its indexes unless they are kept. Errors: kResourceExhausted.
  absl::StatusOr<Engine*> EngineFor(const EngineSetup& setup);
  const RowMask* MaskFor(Subject& subject, std::size_t rows_for_one);
  // Prepares the next queries of a workload.
  SearchBatch NextBatch(const Workload& workload);
  absl::Status Search(Engine& engine, std::size_t collection, const SearchBatch& batch);
  // The time of one search; 0 when it failed.
  double Time(Engine& engine, const Workload& workload, const SearchBatch& batch,
              std::size_t repeats);
  // Runs each engine once untimed, which fills caches and grows buffers. Returns how searches are
  // to be repeated.
  Repeats WarmUp(const std::vector<Engine*>& engines, const Workload& workload);

  const Options options_;
  const Clock& clock_;
  std::vector<Subject> subjects_;
  std::vector<TunedShape> shapes_;
  std::list<Engine> engines_;  // the last used first
  std::vector<QuerySpec> specs_;
  std::size_t next_query_ = 0;
};

}  // namespace simile::app
