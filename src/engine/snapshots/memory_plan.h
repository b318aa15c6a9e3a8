#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

#include "data/load/plan.h"
#include "engine/snapshots/snapshot.h"
#include "simile/limits.h"
#include "simile/segment.h"

namespace simile::engine {

// The bytes that this process may still allocate.
struct HostMemory {
  std::uint64_t available_bytes = 0;
  std::string origin;  // "available on the machine" or "left by the control group's memory limit"
};

// The part of the memory that collections may take: nine tenths.
inline std::uint64_t MayBeTaken(const HostMemory& memory) {
  return memory.available_bytes - memory.available_bytes / 10;
}

// Reads the memory that is left: the lesser of MemAvailable and what the memory limits of the
// process's control group and its parents leave (versions 1 and 2). Page cache counts as free
// unless it is still to be written, because the kernel drops clean cache, even recently used cache,
// before a group runs out of memory. A container sees its own group at the top of the mount,
// although /proc names another path. So every parent of the path is read, and missing ones are
// skipped.
//   root  the folder of /proc and /sys: "/" except in tests
// Errors: kUnavailable without MemAvailable; those of ReadWholeFile.
absl::StatusOr<HostMemory> ReadHostMemory(const std::filesystem::path& root = "/");

// The memory of a collection's data before it is loaded, without its indexes.
struct DataBytes {
  std::uint64_t vectors = 0;
  std::uint64_t payload = 0;
  std::uint64_t users = 0;
  std::uint64_t build = 0;  // the most that loading takes in addition, before the indexes are built
  bool is_sampled = false;  // payload is extrapolated from a part of a large file

  std::uint64_t total() const { return vectors + payload + users; }
};

// Reads headers and a sample of the payload and the users (data::SampleDataset).
// Errors: those of SampleDataset.
absl::StatusOr<DataBytes> PlanData(const data::DatasetPlan& plan, const Limits& limits);

// The memory that a snapshot will take. The publisher reserves it before a load, and `simile plan`
// prints it.
struct MemoryPlan {
  ResidentBytes resident;              // once it serves and its indexes are built, as SumBytes
  std::uint64_t load_peak_bytes = 0;   // the most on the host until it is published
  std::uint64_t index_peak_bytes = 0;  // ... while its indexes are built

  // The most on the host, whenever the indexes are built.
  std::uint64_t peak_bytes() const { return std::max(load_peak_bytes, index_peak_bytes); }
  // The most on the host while the snapshot replaces a generation of `replaced_bytes` bytes.
  //   held  whether callers still read the replaced generation while large indexes are built; else
  //         it is freed before
  std::uint64_t ReloadPeakBytes(std::uint64_t replaced_bytes, bool held) const {
    return std::max(replaced_bytes + load_peak_bytes,
                    index_peak_bytes + (held || !builds_later ? replaced_bytes : 0));
  }

  bool builds_later = false;  // ResidentPlan::builds_later
};
MemoryPlan PlanMemory(const DataBytes& data, const ResidentPlan& index);

}  // namespace simile::engine
