#pragma once

namespace emulated_cuda {

// From now on a bad address says who used it before it ends the process: a kernel, or host code
// that touched device memory. Under AddressSanitizer the sanitizer says it.
void WatchIllegalAddresses();

// The calling thread's own stack for that, without which a fiber whose stack is full dies silently.
void PrepareSignalStack();

}  // namespace emulated_cuda
