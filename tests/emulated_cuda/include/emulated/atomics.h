#pragma once

// CUDA's atomic functions. Relaxed, as on a device: they order no other accesses.

#include "emulated/execution.h"
#include "emulated/warp.h"

namespace emulated_cuda {

template <class T, class Update>
T AtomicUpdate(T* address, Update update) {
  PreemptionPoint();
  T before;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  T after;
  do {
    after = update(before);
  } while (!__atomic_compare_exchange(address, &before, &after, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED));
  return before;
}

}  // namespace emulated_cuda

// NOLINTBEGIN: these names are CUDA's, not ours.

#define EMULATED_ATOMIC(name, Operation, type)                                                \
  inline type name(type* address, type value) {                                               \
    return emulated_cuda::AtomicUpdate(                                                       \
        address, [value](type before) { return emulated_cuda::Operation{}(before, value); }); \
  }
#define EMULATED_ATOMICS(type)                                                                    \
  EMULATED_ATOMIC(atomicAdd, Add, type)                                                           \
  EMULATED_ATOMIC(atomicMax, Max, type)                                                           \
  EMULATED_ATOMIC(atomicMin, Min, type)                                                           \
  EMULATED_ATOMIC(atomicAnd, And, type)                                                           \
  EMULATED_ATOMIC(atomicOr, Or, type)                                                             \
  EMULATED_ATOMIC(atomicXor, Xor, type)                                                           \
  inline type atomicExch(type* address, type value) {                                             \
    return emulated_cuda::AtomicUpdate(address, [value](type) { return value; });                 \
  }                                                                                               \
  inline type atomicCAS(type* address, type expected, type value) {                               \
    return emulated_cuda::AtomicUpdate(                                                           \
        address, [expected, value](type before) { return before == expected ? value : before; }); \
  }
EMULATED_ATOMICS(int)
EMULATED_ATOMICS(unsigned)
EMULATED_ATOMICS(unsigned long long)
EMULATED_ATOMIC(atomicAdd, Add, float)
EMULATED_ATOMIC(atomicAdd, Add, double)
#undef EMULATED_ATOMICS
#undef EMULATED_ATOMIC

inline int atomicSub(int* address, int value) {
  return emulated_cuda::AtomicUpdate(address, [value](int before) {
    return static_cast<int>(static_cast<unsigned>(before) - static_cast<unsigned>(value));
  });
}
inline unsigned atomicSub(unsigned* address, unsigned value) {
  return emulated_cuda::AtomicUpdate(address, [value](unsigned before) { return before - value; });
}
inline unsigned atomicInc(unsigned* address, unsigned last) {
  return emulated_cuda::AtomicUpdate(
      address, [last](unsigned before) { return before >= last ? 0 : before + 1; });
}
inline unsigned atomicDec(unsigned* address, unsigned last) {
  return emulated_cuda::AtomicUpdate(address, [last](unsigned before) {
    return before == 0 || before > last ? last : before - 1;
  });
}

// NOLINTEND
