#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/statusor.h>

#include "cli/bench/load_run.h"
#include "cli/bench/request_pool.h"
#include "cli/bench/vector_check.h"
#include "cli/connection.h"
#include "simile/v1/search.pb.h"

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

// The first place, from 0, at which the hits differ in their id or in the bits of their score.
// Nothing when all hits are the same.
std::optional<int> FirstDifferentHit(const v1::SearchResult& here, const v1::SearchResult& there);
// `heat-1995 with 0.7`; `nothing` behind the last hit.
std::string HitText(const v1::SearchResult& result, int place);

}  // namespace simile::cli::bench
