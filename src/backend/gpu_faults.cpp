#include "backend/gpu_faults.h"

#include <algorithm>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace simile::backend {

std::string WhyNotTried(std::span<const GpuFault> faults,
                        std::chrono::system_clock::time_point now) {
  std::vector<GpuFault> recent;
  std::ranges::copy_if(faults, std::back_inserter(recent), [now](const GpuFault& fault) {
    return fault.at <= now && now - fault.at < kGpuFaultsWindow;
  });
  if (recent.size() < kGpuFaultsMax) return {};
  std::ranges::sort(recent, {}, &GpuFault::at);
  // From this time on the window holds fewer faults than the maximum.
  const auto again = recent[recent.size() - kGpuFaultsMax].at + kGpuFaultsWindow;
  return fmt::format(
      "the GPU was lost {} times in the last {} minutes, the last time to {}; a start from "
      "{:%H:%M:%S} UTC tries it again",
      recent.size(), kGpuFaultsWindow.count(), recent.back().reason,
      fmt::gmtime(std::chrono::ceil<std::chrono::seconds>(again)));
}

}  // namespace simile::backend
