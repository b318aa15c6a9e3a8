#pragma once

#include <cublas_v2.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulated_cuda/block_runner.h"
#include "emulated_cuda/calls.h"
#include "emulated_cuda/device_memory.h"
#include "emulated_cuda/emulated_device.h"
#include "emulated_cuda/handle_set.h"
#include "emulated_cuda/host_memory.h"
#include "emulated_cuda/kernels.h"
#include "emulated_cuda/random.h"
#include "emulated_cuda/streams.h"

struct cublasContext {  // NOLINT: cuBLAS's name
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

namespace emulated_cuda {

// The whole state of the device, guarded by the mutex, which a host thread also holds while the
// device works. Kernels on other OS threads read only memory, options and kernels.
struct DeviceState {
  std::recursive_mutex mutex;
  bool ready = false;
  Options options;
  Random random;
  DeviceMemory memory;
  HostMemory host_memory;
  CallRecord calls;
  Kernels kernels;
  Streams streams;
  HandleSet<CUevent_st> events;
  HandleSet<CUgraph_st> graphs;
  HandleSet<CUgraphExec_st> graph_execs;
  HandleSet<cublasContext> blas;
  cudaError_t lost = cudaSuccess;             // the result of every later call
  cudaError_t next_work_fails = cudaSuccess;  // injected
  bool hangs = false;
  std::vector<std::unique_ptr<BlockRunner>> runners;

  std::mutex report_mutex;
  std::string report;
};

DeviceState& State();

// Forgets the ranges that ended (profiler_ranges.cpp).
void ClearRanges();

// Adds a line to the report. May be called from any thread.
void Report(const std::string& text);

// Queued work failed: drops all later work; all later calls return this error.
void LoseDevice(cudaError_t error);

// Sets the next result of cudaGetLastError on this thread; returns its argument.
cudaError_t SetLast(cudaError_t error);

}  // namespace emulated_cuda
