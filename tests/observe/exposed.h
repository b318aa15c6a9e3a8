#pragma once

#include <string>

#include "observe/metrics.h"
#include "observe/metrics_text.h"

namespace simile::observe {

// The text that a scrape reads.
inline std::string Exposed(const Metrics& metrics) { return MetricsText(metrics.Collectables()); }

}  // namespace simile::observe
