#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/cpu/int8_tuning.h"
#include "bench/bench_data.h"
#include "bench/engine_options.h"
#include "simile/backend.h"
#include "simile/hits.h"
#include "simile/row_mask.h"

namespace simile::bench {

// A backend with its index.
struct Engine {
  std::string name;  // "auto", "scan", "int8:avx2", as on the command line
  std::string backend;
  bool one_at_a_time = false;                      // answers the queries of a batch one by one
  std::optional<backend::cpu::Int8Tuning> tuning;  // none: the plain scan
  std::unique_ptr<Backend> made_by;
  std::shared_ptr<const SegmentIndex> index;
  double build_s = 0;
  std::uint64_t index_bytes = 0;
};

// A share of rows that pass, the same rows for every query.
struct Filter {
  double pass = 1;
  std::optional<RowMask> mask;  // none: every row passes
  std::size_t allowed = 0;
};

// One search: which of the session's engines, filters and queries it uses.
struct Run {
  std::size_t engine = 0;
  std::size_t filter = 0;
  std::size_t batch = 1;
  std::uint32_t k = 10;
  std::size_t first_query = 0;
};

// Rows, queries, every engine's index, and the answers of the plain scan. A search whose answers
// differ from these is an error, and its time is not reported.
class EngineSession {
 public:
  // Errors: kInvalidArgument when this processor cannot run a forced instruction set.
  static absl::StatusOr<std::unique_ptr<EngineSession>> Create(const EngineOptions& options,
                                                               BenchData data);

  const BenchData& data() const { return data_; }
  std::span<const Engine> engines() const { return engines_; }
  std::span<const Filter> filters() const { return filters_; }
  unsigned threads() const { return threads_; }

  // Searches, times the search alone, and compares the answers of verified queries.
  // REQUIRES: first_query + batch <= queries, k <= the options' largest.
  // Returns seconds. Errors: kInternal with the first query, rank, row and score that differ.
  absl::StatusOr<double> Search(const Run& run);
  // Of the last search; of its last query alone where the engine answers one at a time.
  const SearchResult& result() const { return result_; }

  // Whether answers to this query are compared.
  bool IsVerified(std::size_t query) const { return place_of_[query] != kNotVerified; }

 private:
  static constexpr std::uint32_t kNotVerified = 0xffff'ffff;

  EngineSession(const EngineOptions& options, BenchData data);

  absl::Status AddEngine(const EngineOptions& options, const std::string& backend,
                         const std::string& isa);
  void AddFilter(double pass, std::uint64_t seed);
  absl::Status FindExpected(const EngineOptions& options);
  absl::StatusOr<double> SearchAtOnce(const Run& run);
  absl::Status Compare(const Run& run) const;

  const BenchData data_;
  const Metric metric_;
  const unsigned threads_;
  std::vector<Engine> engines_;
  std::vector<Filter> filters_;
  std::vector<std::uint32_t> place_of_;                  // [query]  among the expected
  std::vector<std::vector<std::vector<Hit>>> expected_;  // [filter][place]  to the largest k
  std::vector<QuerySpec> specs_;
  SearchResult result_;
};

}  // namespace simile::bench
