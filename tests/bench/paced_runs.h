#pragma once

#include <istream>
#include <ostream>
#include <vector>

#include <absl/status/status.h>

#include "bench/engine_report.h"
#include "bench/engine_session.h"

namespace simile::bench {

// Runs what another program says, when it says so, so that it can let rivals take turns:
//
//   run ENGINE BATCH K FIRST   searches for queries FIRST .. FIRST + BATCH - 1 with the engine of
//                              this name; answers {"ms": 12.3, "engine": "int8-amx"}
//   answers PATH               writes the last run's rows, int64 [batch, k], -1 where there are
//                              fewer; answers {}
//
// A line a command, a line an answer; {"error": "..."} where one cannot be carried out. Begins with
// {"ready": true, "engines": [{"name", "build_s", "index_bytes"}, ...]}. Ends with its input.
// Cases are logged as they come. Errors: kInternal when an answer was wrong.
absl::Status RunPaced(EngineSession& session, std::istream& in, std::ostream& out,
                      std::vector<CaseLog>& cases);

// The rows of the session's last search, [batch, k], -1 where there are fewer.
std::vector<std::int64_t> RowsOf(const SearchResult& result, std::uint32_t k);

}  // namespace simile::bench
