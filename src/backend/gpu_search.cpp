#include "backend/gpu_search.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "backend/gpu_plugin.h"

namespace simile::backend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPluginFile = "libsimile_cuda.so";

absl::StatusOr<const SimileCudaPlugin*> FindPlugin(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::exists(path, error)) return LoadGpuPlugin(path);
  }
  return absl::FailedPreconditionError(fmt::format(
      "an NVIDIA driver is here, but {} is not beside the server: this build has no GPU plug-in",
      kPluginFile));
}

std::string Describe(const SimileCudaDevice& device) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{} ({:.0f} GiB)", device.name,
                     static_cast<double>(device.memory_bytes) / kGiB);
}

// The device that is to be used. Errors: there is none, or none of this number.
absl::StatusOr<const SimileCudaDevice*> FindDevice(const SimileCudaProbe& probe, int wanted) {
  if (probe.error != 0) {
    return absl::FailedPreconditionError(fmt::format(
        "the NVIDIA driver reports no usable device ({}: {})", probe.error_name, probe.error_text));
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

// 12080 is "CUDA 12.8".
std::string CudaVersion(std::int32_t version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

GpuSearch DefaultGpuSearch() {
  GpuSearch search;
  search.driver_library = "libcuda.so.1";
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (error) return search;
  const fs::path folder = executable.parent_path();
  search.plugin_paths.push_back((folder / kPluginFile).string());
  search.plugin_paths.push_back((folder.parent_path() / "lib" / "simile" / kPluginFile).string());
  return search;
}

absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options) {
  if (absl::Status driver = LoadDriver(search.driver_library); !driver.ok()) return driver;
  const absl::StatusOr<const SimileCudaPlugin*> plugin = FindPlugin(search.plugin_paths);
  if (!plugin.ok()) return plugin.status();
  const auto probe = std::make_unique<SimileCudaProbe>();
  (*plugin)->probe(probe.get());
  const absl::StatusOr<const SimileCudaDevice*> device = FindDevice(*probe, options.device);
  if (!device.ok()) return device.status();

  absl::StatusOr<std::unique_ptr<Backend>> backend =
      absl::UnknownError("the plug-in did not say why");
  (*plugin)->open(&options, &backend);
  if (!backend.ok()) {
    return absl::Status(backend.status().code(),
                        fmt::format("{} cannot be used: {}", Describe(**device),
                                    std::string(backend.status().message())));
  }
  return OpenedGpu{*std::move(backend),
                   fmt::format("{}, {}", Describe(**device), CudaVersion(probe->driver_version))};
}

}  // namespace simile::backend
