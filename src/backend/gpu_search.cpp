#include "backend/gpu_search.h"

#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "backend/build_id.h"
#include "backend/cuda/plugin.h"

namespace simile::backend {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPluginFile = "libsimile_cuda.so";

// A library stays loaded for the life of the process: drivers do not survive being unloaded.
// Empty when it was loaded, else the loader's words without folders, which are nobody's business
// on a receipt.
std::string Load(const std::string& library, void** handle) {
  *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (*handle != nullptr) return {};
  const char* error = dlerror();
  std::string words = error != nullptr ? error : "unknown loader error";
  if (const std::size_t slash = library.find_last_of('/'); slash != std::string::npos) {
    const std::string folder = library.substr(0, slash + 1);
    for (std::size_t at; (at = words.find(folder)) != std::string::npos;) {
      words.erase(at, folder.size());
    }
  }
  return words;
}

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// Empty when the driver's library can be loaded.
std::string WhyNoDriver(const std::string& library) {
  void* driver = nullptr;
  const std::string error = Load(library, &driver);
  if (error.empty()) return {};
  // The loader has no error code, only this text, for a library that is nowhere on its path.
  if (error.find("No such file or directory") != std::string::npos) {
    return fmt::format("no NVIDIA driver on this machine ({} not found)", FileName(library));
  }
  return fmt::format("the NVIDIA driver library cannot be loaded: {}", error);
}

std::string Describe(const SimileCudaDevice& device) {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  return fmt::format("{} ({:.0f} GiB)", device.name,
                     static_cast<double>(device.memory_bytes) / kGiB);
}

std::string Describe(const SimileCudaProbe& probe) {
  if (probe.error != 0) {
    return fmt::format("the NVIDIA driver reports no usable device ({}: {})", probe.error_name,
                       probe.error_text);
  }
  std::string devices = Describe(probe.devices[0]);
  for (std::uint32_t i = 1; i < probe.device_count; ++i) {
    devices += ", " + Describe(probe.devices[i]);
  }
  return fmt::format("{} {} here; this release answers on the CPU", devices,
                     probe.device_count == 1 ? "is" : "are");
}

// What the plug-in in this file says of the devices, or why it cannot be asked.
std::string AskPlugin(const std::string& path) {
  void* library = nullptr;
  if (const std::string error = Load(path, &library); !error.empty()) {
    return fmt::format("the GPU plug-in cannot be loaded: {}", error);
  }
  void* symbol = dlsym(library, SIMILE_CUDA_PLUGIN_ENTRY);
  if (symbol == nullptr) {
    return fmt::format("{} is not a Simile plug-in: it has no {}", FileName(path),
                       SIMILE_CUDA_PLUGIN_ENTRY);
  }
  const SimileCudaPlugin* plugin = reinterpret_cast<SimileCudaPluginEntry>(symbol)();
  if (plugin->interface_version != SIMILE_CUDA_INTERFACE_VERSION ||
      std::string_view(plugin->build_id) != kBuildId) {
    return fmt::format(
        "{} is from another build (it is {} with interface {}, the server is {} with interface "
        "{}); install the two together",
        FileName(path), plugin->build_id, plugin->interface_version, kBuildId,
        static_cast<std::uint32_t>(SIMILE_CUDA_INTERFACE_VERSION));
  }
  const auto probe = std::make_unique<SimileCudaProbe>();
  plugin->probe(probe.get());
  return Describe(*probe);
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

std::string WhyNoGpu(const GpuSearch& search) {
  if (std::string reason = WhyNoDriver(search.driver_library); !reason.empty()) return reason;
  for (const std::string& path : search.plugin_paths) {
    std::error_code error;
    if (fs::exists(path, error)) return AskPlugin(path);
  }
  return fmt::format(
      "an NVIDIA driver is here, but {} is not beside the server: this build has no GPU plug-in",
      kPluginFile);
}

}  // namespace simile::backend
