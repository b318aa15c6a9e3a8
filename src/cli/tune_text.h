#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "app/tune.h"
#include "cli/terminal.h"

namespace simile::cli {

// How a report is to be read.
struct TuneSetting {
  std::uint32_t batch_queries_max = 0;  // the configuration's limit
  unsigned threads = 0;                 // the configuration's; 0: their number is chosen
  std::filesystem::path output;         // empty: nothing was to be written
  // What makes serve read the output: the origin of backend.tuning_cache, "default (HOME)"; empty
  // if that names another file.
  std::string cache_origin;
};

// The GPU's rates and passes, if there is one. Then two tables: every kind of search, with its gain
// where the number of threads changes, and the tuning in force. Then what else follows, and where
// it was written.
std::string TuneText(const app::TuneReport& report, const TuneSetting& setting,
                     const Terminal& terminal);

// The same on one line, ended by '\n': {"machine": {"cpu", "threads", "kernels"}, "collections":
// [{"name", "rows", "dim", "measured_rows"}], "threads": {"before", "after", "conclusion"},
// "parameters": [{"name", "unit", "value", "origin"}], "searches": [{"collection", "batch",
// "rows_for_one", "before_s", "after_s", "gain"}], "gpu": {"device", "why_not", "collections":
// [{"name", "rates": [{"queries", "seconds", "engine"}], "sufficient_batch", "passes":
// [{"queries_max", "hits_max", "pass", "seconds", "rules_seconds"}], "why_not"}]},
// "answers_compared", "other_load", "batch_queries_max": {"now", "sufficient"}, "file" or null if
// nothing was written}. A gain is a share of the rate before, or null where the number of threads
// stays.
std::string TuneJson(const app::TuneReport& report, const TuneSetting& setting);

}  // namespace simile::cli
