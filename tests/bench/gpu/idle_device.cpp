#include "bench/gpu/idle_device.h"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace simile::bench::gpu {
namespace {

using Clock = std::chrono::steady_clock;

// Ranges are pushed and popped by one thread. Names are those of the engine, and outlive it.
struct OpenRange {
  const char* name;
  Clock::time_point began;
  double inner_us;
};
std::vector<OpenRange> open_ranges;
std::vector<std::pair<const char*, double>> ended_ranges;

}  // namespace

IdleDevice& IdleDevice::Get() {
  static IdleDevice device;
  return device;
}

std::map<std::string, double> IdleDevice::TakeRangeTimes() {
  std::map<std::string, double> times;
  for (const auto& [name, us] : ended_ranges) times[name] += us;
  ended_ranges.clear();
  return times;
}

backend::cuda::BlasLibrary IdleDevice::Blas() {
  backend::cuda::BlasLibrary blas;
  static int handle = 0;
  blas.create = [](cublasHandle_t* made) {
    *made = reinterpret_cast<cublasHandle_t>(&handle);
    return CUBLAS_STATUS_SUCCESS;
  };
  blas.destroy = [](cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; };
  blas.set_stream = [](cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; };
  blas.set_workspace = [](cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; };
  blas.set_math_mode = [](cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; };
  blas.gemm = [](auto...) { return CUBLAS_STATUS_SUCCESS; };
  return blas;
}

}  // namespace simile::bench::gpu

using simile::bench::gpu::Clock;
using simile::bench::gpu::ended_ranges;
using simile::bench::gpu::IdleDevice;
using simile::bench::gpu::open_ranges;

// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name):
// CUDA's names
namespace {

// Handles are only passed around.
template <class Handle>
cudaError_t Make(Handle* made) {
  static int object = 0;
  *made = reinterpret_cast<Handle>(&object);
  return cudaSuccess;
}

cudaError_t Allocate(void** memory, std::size_t bytes) {
  *memory = std::calloc(bytes, 1);  // NOLINT(cppcoreguidelines-no-malloc): pages come when used
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t Free(void* memory) {
  std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc)
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaSetDevice(int /*device*/) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strcpy(properties->name, "idle H100");
  properties->major = 9;
  properties->multiProcessorCount = 132;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->l2CacheSize = 50 << 20;
  properties->totalGlobalMem = std::size_t{80} << 30;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*kernel*/) {
  *attributes = {};
  attributes->ptxVersion = 90;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* /*kernel*/, cudaFuncAttribute /*attribute*/,
                                 int /*value*/) {
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = std::size_t{80} << 30;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) { return Allocate(memory, bytes); }
cudaError_t cudaFree(void* memory) { return Free(memory); }
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned /*flags*/) {
  const cudaError_t error = Allocate(memory, bytes);
  if (error == cudaSuccess) std::memset(*memory, 1, bytes);  // pinned pages are there
  return error;
}
cudaError_t cudaFreeHost(void* memory) { return Free(memory); }
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned /*flags*/) {
  *device = host;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t /*stream*/) {
  if (IdleDevice::Get().copies) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* /*to*/, int /*value*/, std::size_t /*bytes*/,
                            cudaStream_t /*stream*/) {
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  return Make(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t /*stream*/, cudaEvent_t /*event*/,
                                unsigned /*flags*/) {
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return Make(event); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) { return Make(event); }
cudaError_t cudaEventDestroy(cudaEvent_t /*event*/) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t /*event*/, cudaStream_t /*stream*/) { return cudaSuccess; }
cudaError_t cudaStreamBeginCapture(cudaStream_t /*stream*/, cudaStreamCaptureMode /*mode*/) {
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t /*stream*/, cudaGraph_t* graph) {
  return Make(graph);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t /*graph*/,
                                 unsigned long long /*flags*/) {
  return Make(exec);
}
cudaError_t cudaGraphDestroy(cudaGraph_t /*graph*/) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t /*exec*/) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t /*exec*/, cudaStream_t /*stream*/) {
  IdleDevice::Get().on_work();
  return cudaSuccess;
}

int nvtxRangePushA(const char* message) {
  open_ranges.push_back({message, Clock::now(), 0});
  return static_cast<int>(open_ranges.size()) - 1;
}
int nvtxRangePop() {
  const auto [name, began, inner_us] = open_ranges.back();
  open_ranges.pop_back();
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
  ended_ranges.emplace_back(name, us - inner_us);
  if (!open_ranges.empty()) open_ranges.back().inner_us += us;
  return static_cast<int>(open_ranges.size());
}
}

namespace emulated_cuda {

cudaError_t LaunchBody(const void* /*kernel*/, dim3 /*grid*/, dim3 /*block*/,
                       std::size_t /*shared_bytes*/, cudaStream_t /*stream*/, bool /*together*/,
                       std::function<void()> /*body*/) {
  IdleDevice::Get().on_work();
  return cudaSuccess;
}

}  // namespace emulated_cuda
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
