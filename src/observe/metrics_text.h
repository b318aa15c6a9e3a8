#pragma once

#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// What a scrape reads: every metric now, in Prometheus' text format 0.0.4.
std::string MetricsText(const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);

}  // namespace simile::observe
