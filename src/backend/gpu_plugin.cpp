#include "backend/gpu_plugin.h"

#include <dlfcn.h>

#include <charconv>
#include <string_view>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "backend/build_id.h"

namespace simile::backend {
namespace {

// Returns the loader's message without folders; empty when the library was loaded.
std::string Load(const std::string& library, void** handle) {
  *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (*handle != nullptr) return {};
  const char* error = dlerror();
  std::string message = error != nullptr ? error : "unknown loader error";
  if (const std::size_t slash = library.find_last_of('/'); slash != std::string::npos) {
    const std::string folder = library.substr(0, slash + 1);
    for (std::size_t at; (at = message.find(folder)) != std::string::npos;) {
      message.erase(at, folder.size());
    }
  }
  return message;
}

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

absl::Status LoadDriver(const std::string& library, const AcceleratorKind& kind) {
  void* driver = nullptr;
  const std::string error = Load(library, &driver);
  if (error.empty()) return absl::OkStatus();
  // The loader gives no error code for a library that is not on its path, only this text.
  if (error.find("No such file or directory") != std::string::npos) {
    return absl::FailedPreconditionError(
        fmt::format("no {} on this machine ({} not found)", kind.driver_name, FileName(library)));
  }
  return absl::FailedPreconditionError(
      fmt::format("the {} library cannot be loaded: {}", kind.driver_name, error));
}

absl::StatusOr<const SimilePlugin*> LoadGpuPlugin(const std::string& path,
                                                  const std::string& entry_symbol) {
  void* library = nullptr;
  if (const std::string error = Load(path, &library); !error.empty()) {
    return absl::FailedPreconditionError(
        fmt::format("the GPU plug-in cannot be loaded: {}", error));
  }
  void* symbol = dlsym(library, entry_symbol.c_str());
  if (symbol == nullptr) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not a Simile plug-in: it has no {}", FileName(path), entry_symbol));
  }
  const SimilePlugin* plugin = reinterpret_cast<SimilePluginEntry>(symbol)();
  if (plugin->interface_version != SIMILE_PLUGIN_INTERFACE_VERSION ||
      std::string_view(plugin->build_id) != kBuildId) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is from another build (it is {} with interface {}, the server is {} with interface "
        "{}); install the two together",
        FileName(path), plugin->build_id, plugin->interface_version, kBuildId,
        static_cast<std::uint32_t>(SIMILE_PLUGIN_INTERFACE_VERSION)));
  }
  return plugin;
}

std::optional<int> DeviceErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kDeviceErrorPayload);
  if (!payload) return std::nullopt;
  const std::string digits(*payload);
  int code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
  if (error != std::errc()) return std::nullopt;
  return code;
}

}  // namespace simile::backend
