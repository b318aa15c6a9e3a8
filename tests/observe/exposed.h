#pragma once

#include <memory>
#include <string>
#include <vector>

#include "observe/metrics.h"

namespace simile::observe {

// Returns the text that a scrape reads.
std::string Exposed(const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);
inline std::string Exposed(const Metrics& metrics) { return Exposed(metrics.Collectables()); }

}  // namespace simile::observe
