#include "backend/gpu_plugin.h"

#include <dlfcn.h>

#include <string_view>

#include <fmt/format.h>

#include "backend/build_id.h"

namespace simile::backend {
namespace {

// Empty when it was loaded, else the loader's words without folders.
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

}  // namespace

absl::Status LoadDriver(const std::string& library) {
  void* driver = nullptr;
  const std::string error = Load(library, &driver);
  if (error.empty()) return absl::OkStatus();
  // The loader has no error code, only this text, for a library that is nowhere on its path.
  if (error.find("No such file or directory") != std::string::npos) {
    return absl::FailedPreconditionError(
        fmt::format("no NVIDIA driver on this machine ({} not found)", FileName(library)));
  }
  return absl::FailedPreconditionError(
      fmt::format("the NVIDIA driver library cannot be loaded: {}", error));
}

absl::StatusOr<const SimileCudaPlugin*> LoadGpuPlugin(const std::string& path) {
  void* library = nullptr;
  if (const std::string error = Load(path, &library); !error.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the GPU plug-in cannot be loaded: {}", error));
  }
  void* symbol = dlsym(library, SIMILE_CUDA_PLUGIN_ENTRY);
  if (symbol == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not a Simile plug-in: it has no {}", FileName(path),
                    static_cast<const char*>(SIMILE_CUDA_PLUGIN_ENTRY)));
  }
  const SimileCudaPlugin* plugin = reinterpret_cast<SimileCudaPluginEntry>(symbol)();
  if (plugin->interface_version != SIMILE_CUDA_INTERFACE_VERSION ||
      std::string_view(plugin->build_id) != kBuildId) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is from another build (it is {} with interface {}, the server is {} with interface "
        "{}); install the two together",
        FileName(path), plugin->build_id, plugin->interface_version, kBuildId,
        static_cast<std::uint32_t>(SIMILE_CUDA_INTERFACE_VERSION)));
  }
  return plugin;
}

}  // namespace simile::backend
