#include "backend/gpu_search.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/gpu_plugin.h"

namespace simile::backend {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<const SimilePlugin*> FindPlugin(const GpuSearch& search) {
  for (const std::string& path : search.plugin_paths) {
    std::error_code error;
    if (fs::exists(path, error)) return LoadGpuPlugin(path, search.kind.entry_symbol);
  }
  return absl::FailedPreconditionError(
      fmt::format("{} is here, but {} is not beside the server: this build has no GPU plug-in",
                  search.kind.a_driver, search.kind.plugin_file));
}

std::string Describe(const SimileDevice& device) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{} ({:.0f} GiB)", device.name,
                     static_cast<double>(device.memory_bytes) / kGiB);
}

// Returns the device with this number. Errors: no device can be used, or none has this number.
absl::StatusOr<const SimileDevice*> FindDevice(const SimileDeviceProbe& probe, int wanted,
                                               const AcceleratorKind& kind) {
  if (probe.error != 0) {
    return absl::FailedPreconditionError(fmt::format("the {} reports no usable device ({}: {})",
                                                     kind.driver_name, probe.error_name,
                                                     probe.error_text));
  }
  const auto number = static_cast<std::uint32_t>(wanted);
  if (number < probe.device_count) return &probe.devices[number];
  std::string devices;
  for (std::uint32_t i = 0; i < probe.device_count; ++i) {
    devices += fmt::format("{}{}, {}", i == 0 ? "" : "; ", i, Describe(probe.devices[i]));
  }
  return absl::FailedPreconditionError(
      fmt::format("gpu.device is {}, which this machine does not have; it has {}", wanted,
                  devices.empty() ? "none" : devices));
}

}  // namespace

std::vector<GpuSearch> DefaultGpuSearches() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = executable.parent_path();
  std::vector<GpuSearch> searches;
  for (const AcceleratorKind& kind : AcceleratorKinds()) {
    GpuSearch& search = searches.emplace_back(GpuSearch{kind.driver_library, {}, kind});
    if (error) continue;
    search.plugin_paths = {(folder / kind.plugin_file).string(),
                           (folder.parent_path() / "lib" / "simile" / kind.plugin_file).string()};
  }
  return searches;
}

absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options) {
  if (absl::Status driver = LoadDriver(search.driver_library, search.kind); !driver.ok())
    return driver;
  const absl::StatusOr<const SimilePlugin*> plugin = FindPlugin(search);
  if (!plugin.ok()) return plugin.status();
  const auto probe = std::make_unique<SimileDeviceProbe>();
  (*plugin)->probe(probe.get());
  const absl::StatusOr<const SimileDevice*> device =
      FindDevice(*probe, options.device, search.kind);
  if (!device.ok()) return device.status();

  absl::StatusOr<std::unique_ptr<Backend>> backend =
      absl::UnknownError("the plug-in did not say why");
  (*plugin)->open(&options, &backend);
  if (!backend.ok()) {
    return absl::Status(backend.status().code(),
                        fmt::format("{} cannot be used: {}", Describe(**device),
                                    std::string(backend.status().message())));
  }
  return OpenedGpu{*std::move(backend), fmt::format("{}, {}", Describe(**device), probe->driver)};
}

}  // namespace simile::backend
