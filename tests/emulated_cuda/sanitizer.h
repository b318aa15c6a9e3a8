#pragma once

// Informs AddressSanitizer of stacks and memory that it did not make. No-ops without it.

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated_cuda {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kAddressSanitizer = true;
inline void StartSwitch(void** fake_stack, const void* bottom, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
}
inline void FinishSwitch(void* fake_stack, const void** old_bottom, std::size_t* old_bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, old_bottom, old_bytes);
}
inline void PoisonRegion(const void* at, std::size_t bytes) {
  __asan_poison_memory_region(at, bytes);
}
inline void UnpoisonRegion(const void* at, std::size_t bytes) {
  __asan_unpoison_memory_region(at, bytes);
}
#else
inline constexpr bool kAddressSanitizer = false;
inline void StartSwitch(void** /*fake_stack*/, const void* /*bottom*/, std::size_t /*bytes*/) {}
inline void FinishSwitch(void* /*fake_stack*/, const void** /*old_bottom*/,
                         std::size_t* /*old_bytes*/) {}
inline void PoisonRegion(const void* /*at*/, std::size_t /*bytes*/) {}
inline void UnpoisonRegion(const void* /*at*/, std::size_t /*bytes*/) {}
#endif

}  // namespace emulated_cuda
