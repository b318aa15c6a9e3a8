// The runtime's memory calls. Copies of pageable host memory behave as on a device: the source is
// read before the call returns, and a copy to the host is complete when it returns.

#include <cstring>
#include <memory>
#include <vector>

#include "emulated_cuda/device_state.h"

using emulated_cuda::Call;
using emulated_cuda::LoseDevice;
using emulated_cuda::RefuseWhileCapturing;
using emulated_cuda::Report;
using emulated_cuda::SetLast;
using emulated_cuda::State;

namespace {

cudaError_t Allocate(void** pointer, std::size_t bytes) {
  *pointer = bytes == 0 ? nullptr : State().memory.Allocate(bytes);
  return SetLast(bytes > 0 && *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

void Free(void* pointer) {
  auto& memory = State().memory;
  const emulated_cuda::DeviceMemory::Access access(memory);
  if (const std::string broken = memory.BrokenRedZone(pointer); !broken.empty()) {
    Report("found by a free: " + broken);
    LoseDevice(cudaErrorIllegalAddress);
  }
  memory.Free(pointer);
}

cudaError_t AllocateHost(const Call& call, void** pointer, std::size_t bytes) {
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  *pointer = State().host_memory.Allocate(bytes);
  return SetLast(*pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

// Device ranges lie within one live allocation; the sanitizer checks host ranges.
bool IsUsable(const void* at, std::size_t bytes) {
  return !State().memory.Contains(at) || State().memory.IsLive(at, bytes);
}

bool KindFits(const void* to, const void* from, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return true;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return State().memory.Contains(to) == to_device && State().memory.Contains(from) == from_device;
}

bool IsPageable(const void* at, std::size_t bytes) {
  return !State().memory.Contains(at) && !State().host_memory.Contains(at, bytes);
}

// Checked again when the work runs: memory that was freed meanwhile is a fault.
emulated_cuda::Work Copy(void* to, const void* from, std::size_t bytes, bool pinned) {
  return [=] {
    const bool gone = pinned && (IsPageable(to, bytes) || IsPageable(from, bytes));
    if (!IsUsable(to, bytes) || !IsUsable(from, bytes) || gone) {
      Report("an asynchronous copy uses memory that was freed or unregistered before it ran");
      return LoseDevice(cudaErrorIllegalAddress);
    }
    std::memmove(to, from, bytes);
  };
}

cudaError_t CopyAsync(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  auto& streams = State().streams;
  const bool from_pageable = IsPageable(from, bytes), to_pageable = IsPageable(to, bytes);
  if (stream->capture != nullptr || (!from_pageable && !to_pageable)) {
    return streams.Queue(stream, Copy(to, from, bytes, !from_pageable && !to_pageable));
  }
  cudaError_t error = cudaSuccess;
  if (from_pageable) {
    const auto* const begin = static_cast<const char*>(from);
    auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
    error =
        streams.Queue(stream, [staged, to, bytes] { Copy(to, staged->data(), bytes, false)(); });
  } else {
    error = streams.Queue(stream, Copy(to, from, bytes, false));
  }
  return error == cudaSuccess && to_pageable ? streams.Drain(stream) : error;
}

cudaError_t FillAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (!State().memory.IsLive(to, bytes)) return SetLast(cudaErrorInvalidValue);
  return State().streams.Queue(stream, [=] {
    if (State().memory.IsLive(to, bytes)) {
      std::memset(to, value, bytes);
    } else {
      Report("an asynchronous fill uses memory that was freed before it ran");
      LoseDevice(cudaErrorIllegalAddress);
    }
  });
}

}  // namespace

extern "C" {

// NOLINTBEGIN: these names are CUDA's, not ours.

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return Allocate(pointer, bytes);
}

// Waits for all work of the device, as a device does.
cudaError_t cudaFree(void* pointer) {
  const Call call(__func__);
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  if (pointer != nullptr && !State().memory.IsAllocation(pointer)) {
    return SetLast(cudaErrorInvalidValue);
  }
  if (pointer == nullptr) return call.error();
  const cudaError_t error = State().streams.DrainAll();
  Free(pointer);
  return call.error() != cudaSuccess ? call.error() : error;
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (found->capture != nullptr) return SetLast(cudaErrorNotSupported);  // memory nodes of graphs
  return Allocate(pointer, bytes);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const Call call(__func__);
  if (pointer == nullptr) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (!State().memory.IsAllocation(pointer)) return SetLast(cudaErrorInvalidValue);
  if (found->capture != nullptr) return SetLast(cudaErrorNotSupported);
  if (call.error() != cudaSuccess) {
    Free(pointer);
    return call.error();
  }
  return State().streams.Queue(found, [pointer] { Free(pointer); });
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  const Call call(__func__);
  return AllocateHost(call, pointer, bytes);
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  const Call call(__func__);
  const unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if (call.error() == cudaSuccess && (flags & ~known) != 0) return SetLast(cudaErrorInvalidValue);
  return AllocateHost(call, pointer, bytes);
}

cudaError_t cudaFreeHost(void* pointer) {
  const Call call(__func__);
  if (pointer == nullptr) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  const cudaError_t error = State().streams.DrainAll();
  if (!State().host_memory.Free(pointer)) return SetLast(cudaErrorInvalidValue);
  return call.error() != cudaSuccess ? call.error() : error;
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  const unsigned known =
      cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
  if (pointer == nullptr || bytes == 0 || (flags & ~known) != 0) {
    return SetLast(cudaErrorInvalidValue);
  }
  const bool is_new = State().host_memory.Register(pointer, bytes);
  return SetLast(is_new ? cudaSuccess : cudaErrorHostMemoryAlreadyRegistered);
}

// Does not wait: the caller must ensure that nothing uses the memory.
cudaError_t cudaHostUnregister(void* pointer) {
  const Call call(__func__);
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  const bool known = State().host_memory.Unregister(pointer);
  if (call.error() != cudaSuccess) return call.error();
  return SetLast(known ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (flags != 0 || !State().host_memory.Contains(host, 1)) return SetLast(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  if (!IsUsable(to, bytes) || !IsUsable(from, bytes) || !KindFits(to, from, kind)) {
    return SetLast(cudaErrorInvalidValue);
  }
  auto& streams = State().streams;
  const cudaStream_t stream = streams.Find(nullptr);
  const cudaError_t error = streams.Queue(stream, Copy(to, from, bytes, false));
  return error != cudaSuccess ? error : streams.Drain(stream);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (!IsUsable(to, bytes) || !IsUsable(from, bytes) || !KindFits(to, from, kind)) {
    return SetLast(cudaErrorInvalidValue);
  }
  return CopyAsync(to, from, bytes, found);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return FillAsync(to, value, bytes, State().streams.Find(nullptr));
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  const cudaStream_t found = State().streams.Find(stream);
  if (found == nullptr) return SetLast(cudaErrorInvalidResourceHandle);
  return FillAsync(to, value, bytes, found);
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  const Call call(__func__);
  if (call.error() != cudaSuccess) return call.error();
  *free_bytes = State().memory.free_bytes();
  *total_bytes = State().memory.bytes();
  return cudaSuccess;
}

// NOLINTEND
}
