#pragma once

// A header of the CUDA toolkit, which its smallest installations lack.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define SIMILE_HAS_NVTX 1
#else
#define SIMILE_HAS_NVTX 0
#endif

namespace simile::backend::cuda {

// Names what this thread does until the range ends, for NVIDIA's profilers (NVTX). Ranges of a
// thread nest. Where no profiler is attached a range is two tests of a pointer.
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
