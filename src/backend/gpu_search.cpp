#include "backend/gpu_search.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "backend/gpu_plugin.h"

namespace simile::backend {
namespace {

namespace fs = std::filesystem;

std::string Describe(const SimileDevice& device) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{} ({:.0f} GiB)", device.name,
                     static_cast<double>(device.memory_bytes) / kGiB);
}

// "0, NVIDIA H200 (139 GiB); 1, NVIDIA T4 (16 GiB)"
std::string DescribeAll(const SimileDeviceProbe& probe) {
  std::string devices;
  for (std::uint32_t i = 0; i < probe.device_count; ++i) {
    devices += fmt::format("{}{}, {}", i == 0 ? "" : "; ", i, Describe(probe.devices[i]));
  }
  return devices.empty() ? "none" : devices;
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

absl::StatusOr<const SimilePlugin*> FindGpuPlugin(const GpuSearch& search) {
  for (const std::string& path : search.plugin_paths) {
    std::error_code error;
    if (fs::exists(path, error)) return LoadGpuPlugin(path, search.kind.entry_symbol);
  }
  return absl::FailedPreconditionError(
      fmt::format("{} is here, but {} is not beside the server: this build has no GPU plug-in",
                  search.kind.a_driver, search.kind.plugin_file));
}

absl::StatusOr<FoundDevice> FindDevice(const SimilePlugin& plugin, int number,
                                       const AcceleratorKind& kind) {
  const auto probe = std::make_unique<SimileDeviceProbe>();
  plugin.probe(probe.get());
  if (probe->error != 0) {
    absl::Status status = absl::FailedPreconditionError(
        fmt::format("the {} reports no usable device ({}: {})", kind.driver_name, probe->error_name,
                    probe->error_text));
    status.SetPayload(kDeviceErrorPayload, absl::Cord(std::to_string(probe->error)));
    return status;
  }
  if (static_cast<std::uint32_t>(number) >= probe->device_count) {
    return absl::NotFoundError(
        fmt::format("gpu.device is {}, which this machine does not have; it has {}", number,
                    DescribeAll(*probe)));
  }
  return FoundDevice{probe->devices[number], probe->driver};
}

absl::StatusOr<OpenedGpu> OpenDevice(const SimilePlugin& plugin, const FoundDevice& found,
                                     const GpuOptions& options) {
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      absl::UnknownError("the plug-in did not say why");
  plugin.open(&options, &backend);
  if (!backend.ok()) {
    absl::Status status(backend.status().code(),
                        fmt::format("{} cannot be used: {}", Describe(found.device),
                                    std::string(backend.status().message())));
    if (const auto code = backend.status().GetPayload(kDeviceErrorPayload)) {
      status.SetPayload(kDeviceErrorPayload, *code);
    }
    return status;
  }
  return OpenedGpu{*std::move(backend), fmt::format("{}, {}", Describe(found.device), found.driver),
                   found.device.bus_id};
}

absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options) {
  if (absl::Status driver = LoadDriver(search.driver_library, search.kind); !driver.ok())
    return driver;
  const absl::StatusOr<const SimilePlugin*> plugin = FindGpuPlugin(search);
  if (!plugin.ok()) return plugin.status();
  const absl::StatusOr<FoundDevice> found = FindDevice(**plugin, options.device, search.kind);
  if (!found.ok()) return found.status();
  return OpenDevice(**plugin, *found, options);
}

}  // namespace simile::backend
