#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/bench/load_run.h"
#include "cli/bench/request_pool.h"
#include "cli/bench/vector_check.h"

namespace simile::cli::bench {

// The kept answers of a run, checked.
struct CheckSummary {
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
  std::map<std::string, std::uint64_t> unchecked;  // by reason
  std::vector<std::string> findings;               // of the first wrong answers
};
CheckSummary CheckKept(const std::vector<KeptAnswer>& kept, const RequestPool& pool,
                       Transport transport, const VectorCheck& check);

}  // namespace simile::cli::bench
