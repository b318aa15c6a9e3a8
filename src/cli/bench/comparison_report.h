#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/bench/comparison_run.h"
#include "cli/terminal.h"

namespace simile::cli::bench {

// docs/bench.md describes it.
nlohmann::ordered_json ComparisonJson(const Comparison& comparison);
// For people: a line for each size of a call.
std::string ComparisonText(const Comparison& comparison, const Terminal& terminal);

}  // namespace simile::cli::bench
