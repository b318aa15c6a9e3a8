#include "engine/snapshots/host_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace simile::engine {
namespace {

using std::filesystem::path;

// The file names of one version of control groups.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // key in memory.stat
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

// The file's single number; nothing when it is absent or says "max".
std::optional<std::uint64_t> ReadNumber(const path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// The number after `key` in a file of "key number" lines.
std::optional<std::uint64_t> ReadKey(const path& file, std::string_view key) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

// What the limit of one control group leaves; nothing when it has none.
std::optional<std::uint64_t> LeftInGroup(const path& group, const GroupFiles& files) {
  const auto limit = ReadNumber(group / files.limit);
  const auto used = ReadNumber(group / files.used);
  if (!limit || !used) return std::nullopt;
  const std::uint64_t reclaimable = ReadKey(group / "memory.stat", files.reclaimable).value_or(0);
  const std::uint64_t kept = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, kept);
}

// Lowers `memory` to what the group at mount/name and its parents leave.
void ApplyGroupLimits(const path& mount, std::string_view name, const GroupFiles& files,
                      HostMemory& memory) {
  for (path below = path(name).relative_path();; below = below.parent_path()) {
    const auto left = LeftInGroup(mount / below, files);
    if (left && *left < memory.available_bytes) {
      memory = {*left, "left by the control group's memory limit"};
    }
    if (below.empty()) return;
  }
}

}  // namespace

absl::StatusOr<HostMemory> ReadHostMemory(const path& root) {
  const auto available_kib = ReadKey(root / "proc/meminfo", "MemAvailable:");
  if (!available_kib) return absl::UnavailableError("/proc/meminfo names no MemAvailable");
  HostMemory memory{*available_kib * 1024, "available on the machine"};

  // Lines are "number:controllers:path"; version 2 has one line, "0::path".
  std::ifstream groups(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t controllers = line.find(':');
    const std::size_t name = line.find(':', controllers + 1);
    if (controllers == std::string::npos || name == std::string::npos) continue;
    const std::string owned = line.substr(controllers + 1, name - controllers - 1);
    const std::string group = line.substr(name + 1);
    if (owned.empty()) {
      ApplyGroupLimits(root / "sys/fs/cgroup", group, kVersion2, memory);
    } else if (("," + owned + ",").find(",memory,") != std::string::npos) {
      ApplyGroupLimits(root / "sys/fs/cgroup/memory", group, kVersion1, memory);
    }
  }
  return memory;
}

}  // namespace simile::engine
