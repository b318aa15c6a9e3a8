#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "app/gpu_rates.h"
#include "cli/terminal.h"

namespace simile::cli {

// Of each collection the rates by batch, and the passes that its load chose. Empty where the
// configuration asks for no GPU.
std::string GpuRatesText(const app::GpuRates& gpu, const Terminal& terminal);

// {"device", "why_not", "collections": [{"name", "rates": [{"queries", "seconds", "engine"}],
// "sufficient_batch", "passes": [{"queries_max", "hits_max", "pass", "seconds", "rules_seconds"}],
// "why_not"}]}
nlohmann::ordered_json GpuRatesJson(const app::GpuRates& gpu);

}  // namespace simile::cli
