#pragma once

// How kernels run: threads, barriers, shared memory, launches. kernels/device.h takes its names
// for the emulated device from here.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace emulated_cuda {

class BlockRunner;

struct BlockContext {
  dim3 grid;
  dim3 block;
  uint3 index;
  std::uint64_t serial;  // no two blocks of a process share one
};

struct PendingCopy {
  void* to;
  const void* from;
  bool valid;
  unsigned group;
};

struct ThreadContext {
  uint3 index;
  unsigned lane;
  BlockContext* block;
  BlockRunner* runner;
  std::vector<PendingCopy> copies;  // of cp.async, oldest first
  unsigned copy_group;
};

// The CUDA thread that this OS thread runs, or null on the host.
extern __thread ThreadContext* current;

enum class BarrierKind { kPlain, kCount, kOr, kAnd };
int BlockBarrier(BarrierKind kind, bool predicate, int line);

// Waits until every lane of `mask` that has not ended is here; then `complete` runs once with the
// argument of each lane (null where it has ended), and all continue.
using CompleteWarp = void (*)(void** lanes);
void WarpRendezvous(unsigned mask, void* mine, CompleteWarp complete, int line);

// Under a seed, sometimes lets other threads of the block run.
void PreemptionPoint();

// Ends the block and makes `error` the device's. Never returns; the thread's frames are not
// unwound.
[[noreturn]] __attribute__((format(printf, 2, 3))) void DeviceFault(cudaError_t error,
                                                                    const char* format, ...);

// Fills with a pattern that is NaN in every format, and out of range as an index.
void Poison(void* to, std::size_t bytes);

// Registers an array of the running block: poisons it and watches the guard after it.
void RegisterShared(void* data, std::size_t data_bytes, void* guard, std::size_t guard_bytes);

void AsyncCopy16(void* to, const void* from, bool valid);
void AsyncCopyCommit();
void AsyncCopyWait(int groups_left);

// 75 where the kernels of the running launch are code for sm_75: kernels/device.h takes what they
// would have been compiled to.
int CodeCapability();

void MmaM16N8K16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], const float (&c)[4],
                 int line);

void MmaM16N8K32(int (&sums)[4], const unsigned (&a)[4], const unsigned (&b)[2], int line);

// Lets every other thread and block run before it returns. When all running threads only poll and
// nothing changes, the launch ends with cudaErrorLaunchTimeout.
unsigned LoadAcquire(const unsigned* from);

cudaError_t LaunchBody(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
                       cudaStream_t stream, bool together, std::function<void()> body);

template <class... Parameters, class... Arguments>
std::function<void()> KernelBody(void (*kernel)(Parameters...), Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<std::decay_t<Parameters>> && ...),
                "a launch copies its arguments byte by byte");
  static_assert((sizeof(std::decay_t<Parameters>) + ... + 0) <= 4096,
                "the arguments of a kernel take at most 4096 bytes");
  // Copied now, as in a launch: later changes by the caller have no effect.
  std::tuple<std::decay_t<Parameters>...> values(std::forward<Arguments>(arguments)...);
  return [kernel, values] { std::apply(kernel, values); };
}

template <class... Parameters, class... Arguments>
cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                   cudaStream_t stream, Arguments&&... arguments) {
  return LaunchBody(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream, false,
                    KernelBody(kernel, std::forward<Arguments>(arguments)...));
}

// All blocks at once, each on an OS thread of its own.
template <class... Parameters, class... Arguments>
cudaError_t LaunchTogether(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                           std::size_t shared_bytes, cudaStream_t stream,
                           Arguments&&... arguments) {
  return LaunchBody(reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, stream, true,
                    KernelBody(kernel, std::forward<Arguments>(arguments)...));
}

// Shared memory that is poison in every block until it is written, with checked indexes and a guard
// at its end. An aggregate, because __shared__ allows no constructor.
template <class T, std::size_t kCount>
struct SharedArray {
  std::uint64_t owner;
  alignas(16) T items[kCount];
  unsigned char guard[64];

  T* data() {
    if (owner != current->block->serial) {
      owner = current->block->serial;
      RegisterShared(items, sizeof(items), guard, sizeof(guard));
    }
    return items;
  }
  T& operator[](std::size_t index) {
    if (index >= kCount) {
      DeviceFault(cudaErrorIllegalAddress, "shared array of %zu: index %zu", kCount, index);
    }
    return data()[index];
  }
};

}  // namespace emulated_cuda

// The block's dynamic shared memory: kernels declare it under this one name.
extern thread_local __align__(16) unsigned char dynamic_shared[];

// NOLINTBEGIN: these names are CUDA's, not ours.

#define threadIdx (emulated_cuda::current->index)
#define blockIdx (emulated_cuda::current->block->index)
#define blockDim (emulated_cuda::current->block->block)
#define gridDim (emulated_cuda::current->block->grid)
constexpr int warpSize = 32;

// The caller's line identifies a barrier: threads at barriers of different lines have diverged.
inline void __syncthreads(int line = __builtin_LINE()) {
  emulated_cuda::BlockBarrier(emulated_cuda::BarrierKind::kPlain, false, line);
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return emulated_cuda::BlockBarrier(emulated_cuda::BarrierKind::kCount, predicate != 0, line);
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return emulated_cuda::BlockBarrier(emulated_cuda::BarrierKind::kOr, predicate != 0, line);
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return emulated_cuda::BlockBarrier(emulated_cuda::BarrierKind::kAnd, predicate != 0, line);
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { emulated_cuda::PreemptionPoint(); }

// NOLINTEND
