#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <CLI/CLI.hpp>

#include "simile/query.h"

namespace simile::bench {

// The command line of engine_bench, of which rescoring_bench takes a part.
struct EngineOptions {
  // The source of the vectors: two files, or a generator.
  std::string vectors_path;
  std::string queries_path;
  std::string synthetic;  // "clustered" or "isotropic"
  std::size_t row_count = 1'000'000;
  std::size_t dim = 384;
  std::size_t query_count = 1'000;
  std::uint64_t seed = 1;
  double norm_spread = 1;  // longest row over shortest
  std::string save_vectors_path;
  std::string save_queries_path;
  std::string metric = "cosine";

  // The cases: every backend with every instruction set, batch size, k and filter.
  std::vector<std::size_t> batches{1, 32, 100, 1'000};
  std::vector<std::uint32_t> ks{10, 100};
  std::vector<double> filter_passes{1};
  std::vector<std::string> backends{"auto"};
  // Of the GPU: cuBLAS as for dlopen, none for the toolkit's own name; seconds until it hangs.
  std::vector<std::string> blas;
  unsigned batch_timeout_s = 10;
  bool int4 = true;
  std::vector<std::string> isas;  // none: the fastest that the processor can run
  unsigned threads = 0;

  std::size_t rounds = 15;
  std::string verify = "all";
  bool quick = false;
  bool ceilings = false;
  bool paced = false;
  std::string json_path;
  std::string answers_path;

  Metric metric_value() const { return metric == "dot" ? Metric::kDot : Metric::kCosine; }
  bool saves() const { return !save_vectors_path.empty() || !save_queries_path.empty(); }
  // Whether any query may be used, and not only those of the first rounds.
  bool uses_all_queries() const { return paced || !answers_path.empty(); }
  std::size_t batch_max() const;
  std::uint32_t k_max() const;
  // How many queries' answers are to be checked; nullopt: all.
  std::optional<std::size_t> verify_max() const;
};

// Where the vectors come from.
void AddDataOptions(CLI::App& app, EngineOptions& options);
// Batch sizes, k, threads, instruction sets, rounds and --json.
void AddCaseOptions(CLI::App& app, EngineOptions& options);
// These, and all others.
void AddOptions(CLI::App& app, EngineOptions& options);

// Checks what CLI11 cannot: options that exclude or need each other. Applies --quick.
// Errors: kInvalidArgument, with a message for the user.
absl::Status Check(EngineOptions& options);

}  // namespace simile::bench
