#include "backend/gpu_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <absl/strings/cord.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/build_id.h"
#include "base/shared_library.h"

namespace simile::backend {
namespace {

std::string FileName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

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

void AddReason(std::string& reasons, const std::string& reason) {
  reasons += reasons.empty() || reason.empty() ? reason : "; " + reason;
}

// The same error with another message.
absl::Status WithMessage(const absl::Status& status, const std::string& message) {
  absl::Status result(status.code(), message);
  if (const auto code = status.GetPayload(kDeviceErrorPayload)) {
    result.SetPayload(kDeviceErrorPayload, *code);
  }
  return result;
}

std::unique_ptr<SimileDeviceProbe> ProbeWith(const SimilePlugin& plugin) {
  auto probe = std::make_unique<SimileDeviceProbe>();
  plugin.probe(probe.get());
  return probe;
}

// "the NVIDIA driver runs CUDA 12.4, the plug-in needs CUDA 13.0 (driver 580 or later)"
std::string WhyTooOld(const SimileDeviceProbe& probe, const AcceleratorKind& kind) {
  const std::string_view oldest = OldestDriverFor(kind, probe.runtime);
  return fmt::format("the {} runs {}, the plug-in needs {}{}", kind.driver_name, probe.driver,
                     probe.runtime,
                     oldest.empty() ? "" : fmt::format(" (driver {} or later)", oldest));
}

// Whether the plug-in has no code for the device, which another build of the engine may have.
bool HasNoCode(const absl::Status& status, const AcceleratorKind& kind) {
  const int code = ParseDeviceError(status).value_or(0);
  return std::ranges::find(kind.no_code, code) != kind.no_code.end();
}

// Errors: those of SimilePlugin::open, with the device's name.
absl::StatusOr<OpenedGpu> OpenDevice(const FoundPlugin& found, const FoundDevice& device,
                                     const GpuOptions& options) {
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      absl::UnknownError("the plug-in did not say why");
  found.plugin->open(&options, &backend);
  const std::string name = Describe(device.device);
  if (!backend.ok()) {
    return WithMessage(backend.status(), fmt::format("{} cannot be used: {}", name,
                                                     std::string(backend.status().message())));
  }
  return OpenedGpu{*std::move(backend), fmt::format("{}, {}", name, device.driver), found.file,
                   device.device.bus_id};
}

// OpenGpu once the driver is loaded.
//   takes_limited  whether to use a plug-in with a limitation while others are untried
//   passed_over    set when such a plug-in was passed over for a later one
absl::StatusOr<OpenedGpu> OpenFirst(GpuSearch left, const GpuOptions& options, bool takes_limited,
                                    bool& passed_over) {
  std::string reasons;  // against the plug-ins that were tried
  absl::Status last;    // the error of the last one
  for (;;) {
    const absl::StatusOr<FoundPlugin> found = FindGpuPlugin(left);
    if (!found.ok()) {
      AddReason(reasons, std::string(found.status().message()));
      return WithMessage(last.ok() ? found.status() : last, reasons);
    }
    AddReason(reasons, found->others);
    const bool is_last = found->untried.empty();
    const auto device = FindDevice(*found->plugin, options.device, left.kind);
    auto opened = device.ok() ? OpenDevice(*found, *device, options) : device.status();
    const std::string limitation = opened.ok() ? opened->backend->limitation() : "";
    if (opened.ok() && (limitation.empty() || takes_limited || (is_last && !passed_over))) {
      if (!reasons.empty())
        opened->description += fmt::format(", through {} ({})", found->file, reasons);
      if (!limitation.empty()) opened->description += "; " + limitation;
      return opened;
    }
    passed_over = passed_over || opened.ok();
    last = opened.ok() ? absl::NotFoundError(limitation) : opened.status();
    const bool ends = is_last || !(opened.ok() || (device.ok() && HasNoCode(last, left.kind)));
    if (ends && reasons.empty()) return last;
    AddReason(reasons, fmt::format("{}: {}", found->file, std::string(last.message())));
    if (ends) return WithMessage(last, reasons);
    left.plugin_paths = found->untried;
  }
}

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

std::optional<int> ParseDeviceError(const absl::Status& status) {
  const auto payload = status.GetPayload(kDeviceErrorPayload);
  if (!payload) return std::nullopt;
  const std::string digits(*payload);
  int code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code);
  if (error != std::errc()) return std::nullopt;
  return code;
}

std::vector<GpuSearch> DefaultGpuSearches() {
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = executable.parent_path();
  std::vector<GpuSearch> searches;
  for (const AcceleratorKind& kind : AcceleratorKinds()) {
    GpuSearch& search = searches.emplace_back(GpuSearch{kind.driver_library, {}, kind});
    if (error) continue;
    for (const PluginFile& file : kind.plugin_files) {
      for (const fs::path& place : {folder, folder.parent_path() / "lib" / "simile"}) {
        search.plugin_paths.push_back((place / file.name).string());
      }
    }
  }
  return searches;
}

absl::StatusOr<FoundPlugin> FindGpuPlugin(const GpuSearch& search) {
  std::vector<std::string> here;
  std::ranges::copy_if(search.plugin_paths, std::back_inserter(here), [](const std::string& path) {
    std::error_code error;
    return fs::exists(path, error);
  });
  if (here.empty()) {
    std::vector<std::string_view> names;
    for (const PluginFile& file : search.kind.plugin_files) names.emplace_back(file.name);
    return absl::NotFoundError(
        fmt::format("{} is here, but no GPU plug-in is beside the server ({}); `simile doctor` "
                    "says how to get one",
                    search.kind.a_driver, fmt::join(names, ", ")));
  }
  FoundPlugin found;
  std::string too_old;  // why the driver cannot run `found`
  for (auto path = here.begin(); path != here.end(); ++path) {
    const auto plugin = LoadGpuPlugin(*path, search.kind.entry_symbol);
    if (!plugin.ok()) {
      AddReason(found.others, std::string(plugin.status().message()));
      continue;
    }
    AddReason(found.others, too_old);
    found.plugin = *plugin;
    found.file = fs::path(*path).filename().string();
    found.untried.assign(std::next(path), here.end());
    const auto probe = ProbeWith(**plugin);
    if (probe->error != search.kind.driver_too_old) return found;
    too_old = fmt::format("{}: {}", found.file, WhyTooOld(*probe, search.kind));
  }
  if (found.plugin == nullptr) return absl::FailedPreconditionError(found.others);
  return found;
}

absl::StatusOr<FoundDevice> FindDevice(const SimilePlugin& plugin, int number,
                                       const AcceleratorKind& kind) {
  const auto probe = ProbeWith(plugin);
  if (probe->error != 0) {
    absl::Status status = absl::FailedPreconditionError(
        probe->error == kind.driver_too_old
            ? WhyTooOld(*probe, kind)
            : fmt::format("the {} reports no usable device ({}: {})", kind.driver_name,
                          probe->error_name, probe->error_text));
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

absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options) {
  if (absl::Status driver = LoadDriver(search.driver_library, search.kind); !driver.ok())
    return driver;
  bool passed_over = false;
  auto opened = OpenFirst(search, options, false, passed_over);
  if (!opened.ok() && passed_over) return OpenFirst(search, options, true, passed_over);
  return opened;
}

}  // namespace simile::backend
