#pragma once

#include <functional>
#include <map>
#include <string>

#include "backend/cuda/blas_library.h"

namespace simile::bench::gpu {

// A device whose work takes no time: what is left of a search is the host's share. Kernels, copies
// and products do nothing once the rows are loaded. This program's own functions replace those of
// the emulated device's libraries.
class IdleDevice {
 public:
  static IdleDevice& Get();

  // Called for each graph and each kernel of a pass: writes what the host waits for.
  std::function<void()> on_work = [] {};
  // Whether copies are made, as a load needs them.
  bool copies = true;

  // The microseconds of each profiler range, by name, without those of the ranges inside it.
  std::map<std::string, double> TakeRangeTimes();

  static backend::cuda::BlasLibrary Blas();
};

}  // namespace simile::bench::gpu
