#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <absl/status/statusor.h>

namespace simile::engine {

// What this process may still allocate.
struct HostMemory {
  std::uint64_t available_bytes = 0;
  std::string origin;  // "available on the machine" or "left by the control group's memory limit"
};

// The part of it that collections may take: nine tenths.
inline std::uint64_t MayBeTaken(const HostMemory& memory) {
  return memory.available_bytes - memory.available_bytes / 10;
}

// The least of what the kernel calls available (MemAvailable) and what the memory limits of the
// process's control group and its parents leave, versions 1 and 2. Page cache counts as free unless
// it is still to be written: the kernel drops clean cache, also cache that was used lately, before
// a group runs out of memory. A container sees its own group at the top of the mount, whatever path
// /proc names, so every parent of that path is read and missing ones are skipped.
//   root  where /proc and /sys are found: "/" but in tests
// Errors: kUnavailable without MemAvailable; those of ReadWholeFile.
absl::StatusOr<HostMemory> ReadHostMemory(const std::filesystem::path& root = "/");

}  // namespace simile::engine
