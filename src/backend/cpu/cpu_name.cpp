#include "backend/cpu/cpu_name.h"

#include <sys/utsname.h>

#include <fstream>

namespace simile::backend::cpu {

std::string CpuName(const std::string& cpuinfo_path) {
  std::ifstream cpuinfo(cpuinfo_path);
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  utsname system{};
  return uname(&system) == 0 ? system.machine : "unknown processor";
}

}  // namespace simile::backend::cpu
