#pragma once

#include <string>

#include "observe/metric_samples.h"
#include "observe/metrics.h"

namespace simile::observe {

// The text that a scrape reads.
inline std::string Exposed(const Metrics& metrics) { return FormatMetrics(metrics.Collectables()); }

}  // namespace simile::observe
