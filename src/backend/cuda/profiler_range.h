#pragma once

// This header of the CUDA toolkit is missing in its smallest installations.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define SIMILE_HAS_NVTX 1
#else
#define SIMILE_HAS_NVTX 0
#endif

namespace simile::backend::cuda {

// Names the work of this thread until the range ends, for NVIDIA's profilers (NVTX). Ranges of a
// thread nest. Without a profiler a range costs two tests of a pointer.
class ProfilerRange {
 public:
#if SIMILE_HAS_NVTX
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
#else
  explicit ProfilerRange(const char* /*name*/) {}
  ~ProfilerRange() {}  // NOLINT(modernize-use-equals-default): then it would be an unused variable
#endif
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace simile::backend::cuda
