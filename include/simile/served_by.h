#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

namespace simile {

// A backend's names on receipts, in the first lines of `serve` and in metrics.
struct BackendInfo {
  std::string name;    // "cpu", "gpu"
  std::string engine;  // "scan-avx512", "scan-avx2", "scan-portable", "fp16-sm90"
  std::string device;  // "AMD EPYC 9B14, 2 threads", "NVIDIA H200"
};

// The backend that answers, and why this backend answers.
struct ServedBy {
  BackendInfo info;
  std::string reason;  // "no NVIDIA driver on this machine (libcuda.so.1 not found)"
};

// The backend that answers because the chosen backend did not, and why; null when the chosen
// backend did. Immutable, shared by all answers that it explains.
using FallbackBackend = std::shared_ptr<const ServedBy>;

// Why the fallback backend answers instead of the chosen backend.
enum class FallbackCause : std::uint8_t {
  kOutOfMemory,  // the device had no memory for a batch
  kCallFailed,   // a device call failed for a batch or a collection
  kLate,         // the device did not finish a batch in time
  kDeviceLost,   // the device is lost: everything from now on
  kDoesNotFit,   // the device had no memory for a collection
};
inline constexpr std::array kFallbackCauses = {
    FallbackCause::kOutOfMemory, FallbackCause::kCallFailed, FallbackCause::kLate,
    FallbackCause::kDeviceLost, FallbackCause::kDoesNotFit};

// "out_of_memory": the cause as a metric's label.
constexpr const char* LabelOf(FallbackCause cause) {
  switch (cause) {
    case FallbackCause::kOutOfMemory:
      return "out_of_memory";
    case FallbackCause::kCallFailed:
      return "call_failed";
    case FallbackCause::kLate:
      return "late";
    case FallbackCause::kDeviceLost:
      return "device_lost";
    case FallbackCause::kDoesNotFit:
      return "does_not_fit";
  }
  return "other";
}

}  // namespace simile
