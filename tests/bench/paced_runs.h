#pragma once

#include <istream>
#include <ostream>
#include <vector>

#include <absl/status/status.h>

#include "bench/engine_report.h"
#include "bench/engine_session.h"

namespace simile::bench {

// Runs commands from another program, which alternates between this process and its rivals:
//
//   run ENGINE BATCH K FIRST   searches for queries FIRST .. FIRST + BATCH - 1 with the engine of
//                              this name; answers {"ms": 12.3, "engine": "int8-amx"}
//   answers PATH               writes the last run's rows, int64 [batch, k], -1 where there are
//                              fewer; answers {}
//
// One line for each command and each answer; {"error": "..."} for a command that fails. Begins with
// {"ready": true, "engines": [{"name", "build_s", "index_bytes"}, ...]} and ends with its input.
// Appends new cases to `cases`. Errors: kInternal when an answer was wrong.
absl::Status RunPaced(EngineSession& session, std::istream& in, std::ostream& out,
                      std::vector<CaseLog>& cases);

// The rows of the session's last search, [batch, k], -1 where there are fewer.
std::vector<std::int64_t> RowsOf(const SearchResult& result, std::uint32_t k);

}  // namespace simile::bench
