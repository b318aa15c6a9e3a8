#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "emulated_cuda/block_runner.h"

namespace emulated_cuda {

// What is known of a kernel: its name, its library, and what cudaFuncSetAttribute allows it.
struct Kernel {
  std::string name;  // qualified, without parameters
  SharedModule module;
  std::size_t dynamic_bytes_max = kSharedDefault;
};

class Kernels {
 public:
  Kernel& Find(const void* address);
  void Clear() { kernels_.clear(); }

 private:
  std::unordered_map<const void*, Kernel> kernels_;
};

// Runs all blocks of a launch, over as many OS threads as its kind asks for, and checks afterwards
// that nothing was written beside memory. A fault loses the device.
void RunGrid(const void* kernel, dim3 grid, dim3 block, std::size_t dynamic_bytes, bool together,
             const std::function<void()>& body);

// Loses the device if something was written beside its memory.
void CheckRedZones(const std::string& culprit);

}  // namespace emulated_cuda
