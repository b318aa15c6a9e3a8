#pragma once

#include <string>

namespace simile::backend::cpu {

// The processor's name as the system reports it, "AMD EPYC 9B14 96-Core Processor", or its
// architecture where the system has no name for it (many ARM machines).
std::string CpuName(const std::string& cpuinfo_path = "/proc/cpuinfo");

}  // namespace simile::backend::cpu
