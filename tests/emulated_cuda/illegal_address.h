#pragma once

namespace emulated_cuda {

// Installs a handler that reports who used a bad address, a kernel or host code, before the process
// ends. Under AddressSanitizer the sanitizer reports it.
void WatchIllegalAddresses();

// Gives the calling thread a signal stack, without which a stack overflow of a fiber is not
// reported.
void PrepareSignalStack();

}  // namespace emulated_cuda
