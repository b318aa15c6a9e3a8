#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
  // What its snapshot holds in memory: {"vectors", 7'680'000}; "device" is the GPU's, the others
  // are the host's.
  std::vector<std::pair<std::string_view, std::uint64_t>> bytes;
  bool serves = true;             // false: only its name and last_load_failed are set
  bool last_load_failed = false;  // it serves what it had before, or nothing
  // Each payload field that has unfit values, and the number of these values.
  std::vector<std::pair<std::string, std::uint64_t>> unfit_values;
};

// A metric with one set of labels, as its owner reads it.
struct ScrapedMetric {
  const char* name;
  const char* help;
  bool is_counter = false;  // else a gauge
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

// Metrics that are read from their owners at each scrape, so that they are never out of date.
// Functions may be called from any thread; an empty one leaves its metric out.
struct ScrapeSources {
  std::function<std::uint64_t()> connections_open;              // client connections now
  std::function<std::vector<CollectionReading>()> collections;  // that serve or failed to load
  std::function<std::vector<DeviceMemory>()> device_memory;     // held on the GPU now
  std::function<std::vector<ScrapedMetric>()> others;           // metrics of one name are adjacent
};

// Makes a collector of simile_connections{state}, simile_rows{collection},
// simile_snapshot_loaded_timestamp_seconds{collection}, simile_last_load_successful{collection},
// simile_collection_bytes{collection,part}, simile_unfit_values{collection,field},
// simile_gpu_memory_bytes{kind} and simile_gpu_memory_peak_bytes{kind}.
std::shared_ptr<prometheus::Collectable> MakeScrapeCollector(ScrapeSources sources);

}  // namespace simile::observe
