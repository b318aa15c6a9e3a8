#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include <absl/status/status.h>

namespace simile::backend::cuda {

// A failed call to CUDA or cuBLAS. Thrown within this folder only: Device::Guard turns it into a
// Status.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(cudaError_t code, const std::string& message)
      : std::runtime_error(message), code_(code) {}

  // The Status that Device::Guard returns unless the device is lost: kResourceExhausted for lack of
  // memory, else kInternal; with the code.
  virtual absl::Status status() const;

 private:
  cudaError_t code_;
};

// A batch that was not finished in time. No call has failed, and the device may still work on the
// batch.
class LateBatch : public DeviceError {
 public:
  explicit LateBatch(const std::string& message) : DeviceError(cudaSuccess, message) {}

  // kDeadlineExceeded.
  absl::Status status() const override { return absl::DeadlineExceededError(what()); }
};

// "cudaErrorIllegalAddress at cudaEventQuery: an illegal memory access was encountered"
std::string FormatError(cudaError_t code, const char* call);
std::string FormatError(cublasStatus_t status, const char* call);

// Whether the error has ended the context, or needs a reset of the device (CUDA's documented list,
// and the errors that only a reset clears).
bool IsSticky(cudaError_t code);

// The Status with the code as its payload (kDeviceErrorPayload).
absl::Status WithCudaError(absl::Status status, cudaError_t code);

}  // namespace simile::backend::cuda
