#pragma once

#include <string>

namespace simile::backend::cpu {

// The processor's name as the system reports it, "AMD EPYC 9B14 96-Core Processor"; of ARM
// processors, for which it has none, the name of the core, "Neoverse N1", or its numbers; the
// architecture where it says nothing.
std::string CpuName(const std::string& cpuinfo_path = "/proc/cpuinfo");

}  // namespace simile::backend::cpu
