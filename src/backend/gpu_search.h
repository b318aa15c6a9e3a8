#pragma once

#include <string>
#include <vector>

namespace simile::backend {

// Where a GPU is looked for. Tests name libraries of their own.
struct GpuSearch {
  std::string driver_library;             // as for dlopen
  std::vector<std::string> plugin_paths;  // files, tried in order
};

// The system's driver, and the plug-in beside the executable or in ../lib/simile from there.
GpuSearch DefaultGpuSearch();

// Why queries are answered on the CPU: the first step towards a GPU that fails, from the driver
// library over the plug-in to the devices, in words for a receipt. When nothing fails the reason is
// that this release's plug-in only looks at devices. Loads libraries and never unloads them.
std::string WhyNoGpu(const GpuSearch& search);

}  // namespace simile::backend
