#pragma once

#include "backend/cuda/plugin.h"

namespace simile::backend::cuda {

// Asks the CUDA runtime for its devices, or for the reason why there are none. Creates no context,
// so a broken device costs nothing but its line in the report.
void ProbeDevices(SimileCudaProbe& probe) noexcept;

}  // namespace simile::backend::cuda
