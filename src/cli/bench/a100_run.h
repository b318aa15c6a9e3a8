#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/a100_report.h"
#include "cli/bench/query_samples.h"
#include "cli/connection.h"

namespace simile::cli::bench {

// Makes the calls of the five tests, one after another over one connection: items by id, users,
// batches of 10, 100 and 1,000 vectors, filters; then reads the memory.
//   server_processes  as RunPlan::server_processes
//   calls_max         of each test, for a server on which a call takes seconds
// Errors: the server's.
absl::StatusOr<A100Measurements> MeasureA100(const Connection& connection,
                                             const v1::Collection& collection,
                                             const QuerySamples& samples,
                                             const std::vector<pid_t>& server_processes,
                                             std::uint32_t calls_max);

}  // namespace simile::cli::bench
