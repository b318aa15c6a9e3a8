#include "backend/gpu_plugin.h"

#include <dlfcn.h>

#include <charconv>
#include <string_view>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "backend/build_id.h"
#include "base/shared_library.h"

namespace simile::backend {
namespace {

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

}  // namespace

absl::Status LoadDriver(const std::string& library, const AcceleratorKind& kind) {
  const absl::Status loaded = base::LoadSharedLibrary(library).status();
  if (loaded.ok()) return loaded;
  const std::string error(loaded.message());
  return absl::FailedPreconditionError(
      absl::IsNotFound(loaded)
          ? fmt::format("no {} on this machine ({})", kind.driver_name, error)
          : fmt::format("the {} library cannot be loaded: {}", kind.driver_name, error));
}

absl::StatusOr<const SimilePlugin*> LoadGpuPlugin(const std::string& path,
                                                  const std::string& entry_symbol) {
  const absl::StatusOr<void*> library = base::LoadSharedLibrary(path);
  if (!library.ok()) {
    return absl::FailedPreconditionError(fmt::format("the GPU plug-in cannot be loaded: {}",
                                                     std::string(library.status().message())));
  }
  void* symbol = dlsym(*library, entry_symbol.c_str());
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
