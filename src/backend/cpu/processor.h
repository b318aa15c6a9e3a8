#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace simile::backend::cpu {

// Bytes of the first processor's second-level cache as Linux describes it: the folder holds one
// index* for each cache with its level, type and size. Nothing when no cache is of the second
// level. Tests pass their own folders.
std::optional<std::size_t> SecondLevelBytes(
    const std::filesystem::path& folder = "/sys/devices/system/cpu/cpu0/cache");

// The processor's name as the system reports it, "AMD EPYC 9B14 96-Core Processor". For ARM
// processors the system reports no name; then the name of the core, "Neoverse N1", or its numbers.
// Without any report, the architecture.
std::string CpuName(const std::string& cpuinfo_path = "/proc/cpuinfo");

}  // namespace simile::backend::cpu
