#include "backend/accelerator_kinds.h"

namespace simile::backend {

std::span<const AcceleratorKind> AcceleratorKinds() {
  static constexpr AcceleratorKind kKinds[] = {
      {"NVIDIA driver", "an NVIDIA driver", "libcuda.so.1", "libsimile_cuda.so",
       "simile_cuda_plugin"},
  };
  return kKinds;
}

}  // namespace simile::backend
