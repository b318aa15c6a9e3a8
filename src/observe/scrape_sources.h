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

// The metrics of one collection.
struct CollectionReading {
  std::string name;
  std::uint64_t row_count = 0;
  std::chrono::system_clock::time_point loaded_at;
};

// Gauges that are read from their owners at each scrape, so that they are never out of date.
// Functions may be called from any thread; an empty one leaves its metric out.
struct ScrapeSources {
  std::function<std::uint64_t()> queue_depth;                   // queries waiting now
  std::function<std::uint64_t()> connections_open;              // client connections now
  std::function<std::vector<CollectionReading>()> collections;  // those that serve
  std::function<std::vector<DeviceMemory>()> device_memory;     // held on the GPU now
};

// Makes a collector of simile_queue_depth, simile_connections{state}, simile_rows{collection},
// simile_snapshot_loaded_timestamp_seconds{collection}, simile_gpu_memory_bytes{kind} and
// simile_gpu_memory_peak_bytes{kind}.
std::shared_ptr<prometheus::Collectable> MakeScrapeCollector(ScrapeSources sources);

}  // namespace simile::observe
