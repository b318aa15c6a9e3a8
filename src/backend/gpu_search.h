#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "backend/accelerator_kinds.h"
#include "backend/accelerator_plugin.h"
#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::backend {

// Loads the libraries that a GPU needs. They stay loaded until the process ends, because drivers do
// not survive being unloaded. All errors are kFailedPrecondition with text for a receipt, so they
// name files without their folders.

// Loads the driver's library, by its name or path as for dlopen.
// Errors: it is not on this machine, or it cannot be loaded.
absl::Status LoadDriver(const std::string& library, const AcceleratorKind& kind);

// Loads the plug-in in this file.
// Errors: it cannot be loaded, does not export the entry symbol, or has another build id or
//         interface version than the server.
absl::StatusOr<const SimilePlugin*> LoadGpuPlugin(const std::string& path,
                                                  const std::string& entry_symbol);

// Returns the vendor's error code that a plug-in's Status carries (kDeviceErrorPayload); nullopt
// for none.
std::optional<int> ParseDeviceError(const absl::Status& status);

// Where to look for a GPU of one kind. Tests name their own libraries.
struct GpuSearch {
  std::string driver_library;             // as for dlopen
  std::vector<std::string> plugin_paths;  // files, best first
  AcceleratorKind kind = AcceleratorKinds().front();
};

// For each accelerator kind, the system's driver and its plug-ins beside the executable or in
// ../lib/simile from there.
std::vector<GpuSearch> DefaultGpuSearches();

struct OpenedGpu {
  std::unique_ptr<Backend> backend;
  // "NVIDIA H200 (139 GiB), CUDA 13.0". If it is not opened by the first plug-in that exists, also
  // the plug-in's name, and why it is used.
  std::string description;
  std::string plugin_file;  // without folders
  std::string bus_id;       // "0000:3b:00.0"
};

// Opens the GPU: loads the driver, finds a plug-in and the device, and opens it. A
// plug-in that has no code for the device, or has a limitation (Backend), is passed over for the
// next file. If all usable plug-ins are limited, the first of them is used. Never unloads a
// library.
// Errors: the first step that fails, as a receipt gives it; with several plug-ins the reason of
//         each, with the codes of the last that could be loaded. Those of SimilePlugin::open come
//         with the device's name and the vendor's code (kDeviceErrorPayload).
absl::StatusOr<OpenedGpu> OpenGpu(const GpuSearch& search, const GpuOptions& options);

struct FoundPlugin {
  const SimilePlugin* plugin = nullptr;
  std::string file;    // without folders
  std::string others;  // why the files before it are not used; empty when there are none
  std::vector<std::string> untried;  // paths of the files after it
};

// Loads the first plug-in that exists, can be loaded and is not too new for the driver. If all are
// too new, loads the last one; then devices cannot be listed.
// Errors: kNotFound when none exists; kFailedPrecondition with the reason of each (LoadGpuPlugin).
absl::StatusOr<FoundPlugin> FindGpuPlugin(const GpuSearch& search);

// The devices that a plug-in finds on the machine, and the configured device among them.
struct FoundDevice {
  SimileDevice device;
  std::string driver;  // "CUDA 13.0"
};
// Errors: kFailedPrecondition with the vendor's code (kDeviceErrorPayload) when devices cannot be
// listed; kNotFound when none has this number.
absl::StatusOr<FoundDevice> FindDevice(const SimilePlugin& plugin, int number,
                                       const AcceleratorKind& kind);

}  // namespace simile::backend
