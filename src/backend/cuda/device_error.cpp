#include "backend/cuda/device_error.h"

#include <algorithm>
#include <array>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "backend/accelerator_plugin.h"

namespace simile::backend::cuda {
namespace {

// 214 uncorrectable ECC, 226 contained ECC, 700 illegal address, 702 timeout, 709 context
// destroyed, 710 assert, 714 hardware stack, 715 illegal instruction, 716 misaligned, 717 address
// space, 718 invalid PC, 719 launch failure, 721 tensor memory, 810 MPS client terminated, 911
// external device, 999 unknown.
constexpr std::array kSticky{214, 226, 700, 702, 709, 710, 714, 715,
                             716, 717, 718, 719, 721, 810, 911, 999};

}  // namespace

std::string FormatError(cudaError_t code, const char* call) {
  return fmt::format("{} at {}: {}", cudaGetErrorName(code), call, cudaGetErrorString(code));
}

std::string FormatError(cublasStatus_t status, const char* call) {
  return fmt::format("cuBLAS status {} at {}", static_cast<int>(status), call);
}

bool IsSticky(cudaError_t code) {
  return std::ranges::find(kSticky, static_cast<int>(code)) != kSticky.end();
}

absl::Status WithCudaError(absl::Status status, cudaError_t code) {
  status.SetPayload(kDeviceErrorPayload, absl::Cord(std::to_string(static_cast<int>(code))));
  return status;
}

absl::Status DeviceError::status() const {
  return WithCudaError(code_ == cudaErrorMemoryAllocation ? absl::ResourceExhaustedError(what())
                                                          : absl::InternalError(what()),
                       code_);
}

}  // namespace simile::backend::cuda
