#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/tuning/tune.h"
#include "cli/terminal.h"

namespace simile::cli {

// The settings of a tune run that its report explains.
struct TuneSetting {
  std::uint32_t batch_queries_max = 0;  // limits.batch_queries_max of the configuration
  unsigned threads = 0;          // backend.threads of the configuration; 0: tune chooses the number
  std::filesystem::path output;  // empty: --dry-run, nothing is written
  // The origin of backend.tuning_cache, such as "default (HOME)", if it names the output, so that
  // `serve` reads it. Empty if it names another file.
  std::string cache_origin;
};

// The report for people. First the GPU's rates and passes, if there is a GPU. Then two tables: the
// searches, with their gain if the number of threads changes, and the tuning in force. Then the
// advice for limits.batch_queries_max, and the file that was written.
std::string TuneText(const app::TuneReport& report, const TuneSetting& setting,
                     const Terminal& terminal);

// The report on one line, ended by '\n': {"machine": {"cpu", "threads", "kernels"}, "collections":
// [{"name", "rows", "dim", "measured_rows"}], "threads": {"before", "after", "conclusion"},
// "parameters": [{"name", "unit", "value", "origin"}], "searches": [{"collection", "batch",
// "rows_for_one", "before_s", "after_s", "gain"}], "gpu": {"device", "why_not", "collections":
// [{"name", "rates": [{"queries", "seconds", "engine"}], "sufficient_batch", "passes":
// [{"queries_max", "hits_max", "pass", "seconds", "rules_seconds"}], "why_not"}]},
// "answers_compared", "other_load", "batch_queries_max": {"now", "sufficient"}, "file" or null if
// nothing was written}. A gain is a share of the rate before, or null if the number of threads
// stays.
std::string TuneJson(const app::TuneReport& report, const TuneSetting& setting);

}  // namespace simile::cli
