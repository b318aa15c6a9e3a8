#pragma once

#include <string>

namespace simile::doctor {

// What the driver's library (libcuda) says. It is asked without CUDA's runtime, which hides the
// driver's own errors.
struct DriverAnswer {
  bool found = false;      // the library is on this machine
  std::string load_error;  // why it cannot be loaded, in the loader's words; empty when it was
  std::string path;        // of the loaded file, links resolved
  std::string library;     // "570.133.20": the version in that file's name; empty when it has none
  int code = 0;            // of the first call that failed; 0 for none
  std::string error;       // "cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
  int version = 0;         // the newest CUDA that it runs: 12080; 0 when unknown
  int devices = 0;
};

// Loads the library, by its name or path as for dlopen, starts it and counts the devices. May block
// as long as the driver does. Leaves the library loaded.
DriverAnswer AskDriver(const std::string& library);

// "CUDA 12.8" of 12080.
std::string CudaText(int version);

}  // namespace simile::doctor
