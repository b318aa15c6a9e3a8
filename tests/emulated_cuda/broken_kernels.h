#pragma once

#include <cuda_runtime_api.h>

namespace simile::broken {

// Kernels with one bug each, which the emulated device must find under every seed.
enum class Bug {
  kMissingBarrier,
  kMissingBarrierPlain,  // with a plain __shared__ array
  kMissingBarrierBeforeReuse,
  kMissingCopyWait,
  kWriteBehindGlobal,
  kWriteBeforeGlobal,
  kIndexBehindShared,
  kWriteBehindShared,  // past the array, without the index check
  kWriteBehindDynamic,
  kUnwrittenShared,
  kUnwrittenPlain,
  kUnwrittenDynamic,
  kUnwrittenGlobal,
  kReturnBeforeBarrier,
  kTwoBarriers,
  kMissingSyncwarp,
  kWrongLaneMask,
  kNotInOwnMask,
  kLastWriter,
  kMisalignedCopy,
  kTooMuchShared
};

// Threads and values of each kernel; the correct kernel would reverse `in` into `out`.
inline constexpr int kThreads = 128;

// Launches one block of kThreads. `scratch` is a third array of kThreads, never written by the
// host.
cudaError_t Launch(Bug bug, const int* in, int* out, int* scratch, cudaStream_t stream);

}  // namespace simile::broken
