#include "bench/gpu/card.h"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "backend/cuda/device.h"

namespace simile::bench::gpu {

absl::Status FindCard(int ordinal) {
  SimileDeviceProbe probe;
  backend::cuda::ProbeDevices(probe);
  if (probe.error != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "no GPU to measure: {} ({}); run this on a machine with an NVIDIA card and a "
        "driver for {}",
        std::begin(probe.error_text), std::begin(probe.error_name), std::begin(probe.runtime)));
  }
  if (ordinal < 0 || static_cast<std::uint32_t>(ordinal) >= probe.device_count) {
    return absl::FailedPreconditionError(fmt::format(
        "there is no GPU {}: this machine has {}, numbered from 0", ordinal, probe.device_count));
  }
  return absl::OkStatus();
}

int WithCard(const backend::GpuOptions& options, const std::function<absl::Status(Card&)>& work) {
  if (absl::Status status = FindCard(options.device); !status.ok()) {
    Explain(status);
    return kExitNoCard;
  }
  try {
    Card card(options, backend::cuda::LoadBlas(options));
    const absl::Status status = work(card);
    return status.ok() ? 0 : Explain(status);
  } catch (const std::exception& error) {  // DeviceError, or this machine is out of memory
    return Explain(absl::InternalError(error.what()));
  }
}

nlohmann::json Describe(const backend::cuda::CardTraits& traits) {
  return {{"name", traits.name},
          {"multiprocessors", traits.multiprocessors},
          {"capability", traits.capability},
          {"shared_bytes_max", traits.shared_bytes_max},
          {"l2_bytes", traits.l2_bytes},
          {"memory_bytes", traits.memory_bytes}};
}

int Explain(const absl::Status& status) {
  fmt::print(stderr, "error: {}\n", std::string(status.message()));
  return kExitFailed;
}

}  // namespace simile::bench::gpu
