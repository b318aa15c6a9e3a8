#include "cli/plan/found_card.h"

#include <fmt/format.h>

#include "backend/gpu_search.h"
#include "backend/nvml.h"

namespace simile::cli {
namespace {

absl::StatusOr<FoundCard> ReadCard(int number, const std::string& library) {
  const auto nvml = backend::Nvml::Open(library);
  if (!nvml.ok()) return nvml.status();
  const auto reading = (*nvml)->Read(static_cast<unsigned>(number));
  if (!reading.ok()) return reading.status();
  if (!reading->memory_total_bytes) {
    return absl::NotFoundError(
        fmt::format("{} does not say how much memory it has", reading->name));
  }
  return FoundCard{reading->name,
                   fmt::format("card {} in the order of the bus, at {}; there is no GPU plug-in",
                               number, reading->bus_id),
                   *reading->memory_total_bytes};
}

}  // namespace

absl::StatusOr<FoundCard> FindCard(int number, const backend::GpuSearch& search,
                                   const std::string& nvml) {
  if (absl::Status driver = backend::LoadDriver(search.driver_library, search.kind); !driver.ok()) {
    return driver;
  }
  const auto plugin = backend::FindGpuPlugin(search);
  if (!plugin.ok()) return ReadCard(number, nvml);
  const auto found = backend::FindDevice(*plugin->plugin, number, search.kind);
  if (!found.ok()) return found.status();
  return FoundCard{found->device.name, fmt::format("gpu.device {}", number),
                   found->device.memory_bytes};
}

}  // namespace simile::cli
