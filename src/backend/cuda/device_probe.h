#pragma once

#include "backend/accelerator_plugin.h"

namespace simile::backend::cuda {

// Lists the CUDA runtime's devices, or why there are none. Creates no context, so that a broken
// device only adds its line to the report.
void ProbeDevices(SimileDeviceProbe& probe) noexcept;

}  // namespace simile::backend::cuda
