#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "backend/cuda/device.h"

namespace simile::backend::cuda {

// One owner class per kind of CUDA handle. Owners borrow the device, which outlives them. They free
// nothing on a lost device.

// Device memory for `count` values, uninitialised.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  // Throws DeviceError.
  DeviceArray(Device& device, std::size_t count, MemoryKind kind)
      : device_(&device), bytes_(count * sizeof(T)), kind_(kind) {
    if (bytes_ != 0) memory_ = static_cast<T*>(device.Allocate(bytes_, kind));
  }
  ~DeviceArray() {
    if (memory_ != nullptr) device_->Release(memory_, bytes_, kind_);
  }
  DeviceArray(DeviceArray&& other) noexcept { Swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    DeviceArray(std::move(other)).Swap(*this);
    return *this;
  }

  T* get() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void Swap(DeviceArray& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(kind_, other.kind_);
  }

  Device* device_ = nullptr;
  T* memory_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::kWorkspace;
};

// A handle that CUDA creates and destroys.
template <class Handle, cudaError_t (*kDestroy)(Handle)>
class Owned {
 public:
  Owned() = default;
  Owned(Device& device, Handle handle) : device_(&device), handle_(handle) {}
  ~Owned() {
    if (handle_ == nullptr) return;
    device_->Retire([this] { return kDestroy(handle_); });
  }
  Owned(Owned&& other) noexcept { Swap(other); }
  Owned& operator=(Owned&& other) noexcept {
    Owned(std::move(other)).Swap(*this);
    return *this;
  }

  Handle get() const { return handle_; }

 private:
  void Swap(Owned& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

  Device* device_ = nullptr;
  Handle handle_ = nullptr;
};

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using PinnedMemory = Owned<void*, cudaFreeHost>;
using RegisteredMemory = Owned<void*, cudaHostUnregister>;

// Throw DeviceError.
inline Stream MakeStream(Device& device) {
  cudaStream_t stream = nullptr;
  device.Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  return {device, stream};
}
inline Event MakeEvent(Device& device) {
  cudaEvent_t event = nullptr;
  device.Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
               "cudaEventCreateWithFlags");
  return {device, event};
}
// Makes an event that keeps the time at which the device reached it.
inline Event MakeTimingEvent(Device& device) {
  cudaEvent_t event = nullptr;
  device.Check(cudaEventCreate(&event), "cudaEventCreate");
  return {device, event};
}
// Captures as a graph the work that `enqueue` puts into the stream, and into streams joined to it
// by events.
template <class Enqueue>
GraphExec Capture(Device& device, cudaStream_t stream, const Enqueue& enqueue) {
  device.Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    if (!device.lost()) {
      cudaStreamEndCapture(stream, &graph);
      cudaGetLastError();  // clears the abandoned capture's error
    }
    const Graph discarded(device, graph);
    throw;
  }
  device.Check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  const Graph captured(device, graph);
  cudaGraphExec_t exec = nullptr;
  device.Check(cudaGraphInstantiate(&exec, captured.get(), 0), "cudaGraphInstantiate");
  return {device, exec};
}
inline PinnedMemory MakePinned(Device& device, std::size_t bytes) {
  void* memory = nullptr;
  device.Check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped), "cudaHostAlloc");
  return {device, memory};
}
// The address by which kernels reach host memory that is pinned or registered.
inline void* MappedAddress(Device& device, void* host) {
  void* mapped = nullptr;
  device.Check(cudaHostGetDevicePointer(&mapped, host, 0), "cudaHostGetDevicePointer");
  return mapped;
}

}  // namespace simile::backend::cuda
