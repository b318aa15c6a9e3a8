#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/query_samples.h"
#include "cli/connection.h"

namespace simile::cli::bench {

// Medians over the calls of one size, in milliseconds.
struct ComparedTimes {
  double call_ms = 0;     // measured by the client
  double compute_ms = 0;  // by the receipts
};

struct ComparedBatch {
  std::uint32_t queries = 0;  // queries in each call
  std::uint32_t calls = 0;    // calls made to each server
  ComparedTimes measured;
  ComparedTimes other;

  double times_faster() const { return other.call_ms / measured.call_ms; }
};

// Two servers with the same content, asked the same queries.
struct Comparison {
  std::string collection;
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  std::uint32_t k = 0;
  std::string measured_backend;  // "gpu: fp16-scan-sm90"
  std::string measured_device;
  std::string other_backend;
  std::string other_device;
  std::vector<ComparedBatch> batches;
  std::uint64_t answers = 0;  // answers compared; all were equal
};

// Asks both servers, in turns, for the nearest rows of the same vectors, in calls of 1, 10, 32, 100
// and 1,000 queries. Compares ids and the bits of the scores.
//   other_is_cpu  whether the second server is known to use the CPU; then the first must answer on
//                 a GPU
// Errors: the servers'; kFailedPrecondition if their contents differ, or for other_is_cpu;
//         kDataLoss when answers differ, with the query and the rank.
absl::StatusOr<Comparison> Compare(const Connection& measured, const Connection& other,
                                   const QuerySamples& samples, std::uint32_t k, bool other_is_cpu);

}  // namespace simile::cli::bench
