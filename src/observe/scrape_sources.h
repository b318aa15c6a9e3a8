#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simile/backend.h"

namespace prometheus {
class Collectable;
}

namespace simile::observe {

// A collection as the metrics show it.
struct CollectionReading {
  std::string name;
  std::uint64_t row_count = 0;
  std::chrono::system_clock::time_point loaded_at;
};

// Where the gauges that somebody else already counts are read when a scrape comes, so that they can
// neither drift nor outlive what they describe. Functions may be called from any thread; an empty
// one leaves its metric out.
struct ScrapeSources {
  std::function<std::uint64_t()> queue_depth;                   // queries waiting now
  std::function<std::uint64_t()> connections_open;              // client connections now
  std::function<std::vector<CollectionReading>()> collections;  // those that answer
  std::function<std::vector<DeviceMemory>()> device_memory;     // held on the GPU now
};

// simile_queue_depth, simile_connections{state}, simile_rows{collection},
// simile_snapshot_loaded_timestamp_seconds{collection}, simile_gpu_memory_bytes{kind} and
// simile_gpu_memory_peak_bytes{kind}.
std::shared_ptr<prometheus::Collectable> MakeScrapeCollector(ScrapeSources sources);

}  // namespace simile::observe
