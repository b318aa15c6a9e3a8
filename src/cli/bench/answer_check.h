#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/load_run.h"
#include "cli/bench/request_pool.h"
#include "cli/bench/vector_check.h"
#include "cli/connection.h"

namespace simile::cli::bench {

// The kept answers of a run, checked.
struct CheckSummary {
  struct Kind {
    std::uint64_t compared = 0;
    std::uint64_t wrong = 0;
  };
  std::string against = "double precision";
  std::map<std::string, Kind> kinds{};  // by name
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
  std::map<std::string, std::uint64_t> unchecked;  // by reason
  std::vector<std::string> findings;               // of the first wrong answers
};
CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check);

// Compares answers of every kind with those of another server, to the bit: hits and groups, their
// order, ids, scores and payload. Asks that server once for each different request.
// Errors: those of the server.
absl::StatusOr<CheckSummary> CompareKept(const std::vector<KeptAnswer>& kept,
                                         const RequestPool& pool, Transport transport,
                                         const Connection& other);

}  // namespace simile::cli::bench
