#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "emulated_cuda/block_runner.h"

namespace emulated_cuda {

// A kernel: its name, its library, and its limit from cudaFuncSetAttribute.
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

// Runs all blocks of a launch on the OS threads that its kind needs, then checks the red zones. A
// fault loses the device.
void RunGrid(const void* kernel, dim3 grid, dim3 block, std::size_t dynamic_bytes, bool together,
             const std::function<void()>& body);

// Loses the device if a red zone was written.
void CheckRedZones(const std::string& culprit);

}  // namespace emulated_cuda
