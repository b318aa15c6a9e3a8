#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include <absl/status/status.h>

namespace simile::backend::cuda {

// A call to CUDA or cuBLAS that failed. Thrown within this folder only; every way out of it turns
// the exception into a Status (Device::Guard).
class DeviceError : public std::runtime_error {
 public:
  DeviceError(cudaError_t code, const std::string& words)
      : std::runtime_error(words), code_(code) {}

  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

// "cudaErrorIllegalAddress at cudaEventQuery: an illegal memory access was encountered"
std::string WordsOf(cudaError_t code, const char* call);
std::string WordsOf(cublasStatus_t status, const char* call);

// Whether the error has ended the context, or the device is in a state from which no call of this
// process can bring it back (CUDA's own list, and those that only a reset cures).
bool IsSticky(cudaError_t code);

// The Status with the code as its payload (kCudaErrorPayload).
absl::Status WithCudaError(absl::Status status, cudaError_t code);

// The Status of an error that did not cost the device: kResourceExhausted for lack of memory, else
// kInternal; with the code.
absl::Status StatusOf(const DeviceError& error);

}  // namespace simile::backend::cuda
