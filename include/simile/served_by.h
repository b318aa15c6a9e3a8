#pragma once

#include <memory>
#include <string>

namespace simile {

// What a backend calls itself on receipts, in the first lines of `serve` and in metrics.
struct BackendInfo {
  std::string name;    // "cpu", "gpu"
  std::string engine;  // "scan-avx512", "scan-avx2", "scan-portable", "fp16-sm90"
  std::string device;  // "AMD EPYC 9B14, 2 threads", "NVIDIA H200"
};

// Who answers, and why it is that one.
struct ServedBy {
  BackendInfo info;
  std::string reason;  // "no NVIDIA driver on this machine (libcuda.so.1 not found)"
};

// Somebody who answers in the stead of the backend that was chosen; null where nobody does.
// Immutable, shared by all answers that it explains.
using StandIn = std::shared_ptr<const ServedBy>;

}  // namespace simile
