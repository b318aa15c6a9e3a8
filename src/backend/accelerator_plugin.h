#pragma once

// The boundary between the server and an accelerator's plug-in, the same for every vendor. The
// first two fields of the table are plain C data, so that a plug-in of another build is recognised
// and refused before anything else in it is used. The rest uses the server's own types, which an
// equal build id makes safe.

#include <cstdint>
#include <memory>

#include <absl/status/statusor.h>

#include "backend/gpu_options.h"
#include "simile/backend.h"

namespace simile::backend {

// The type url under which a plug-in's Status carries the vendor's error code, as decimal text.
inline constexpr char kDeviceErrorPayload[] = "simile/device_error";

}  // namespace simile::backend

extern "C" {

// Grows whenever a struct below changes.
enum : std::uint32_t { SIMILE_PLUGIN_INTERFACE_VERSION = 6 };

enum : std::uint32_t { SIMILE_PLUGIN_DEVICES_MAX = 16, SIMILE_PLUGIN_TEXT_BYTES = 256 };

// All texts end with 0.
struct SimileDevice {
  char name[SIMILE_PLUGIN_TEXT_BYTES];  // "NVIDIA H200"
  std::uint64_t memory_bytes;
  char bus_id[SIMILE_PLUGIN_TEXT_BYTES];  // "0000:3b:00.0", as the vendor's tools number it
};

struct SimileDeviceProbe {
  std::int32_t error;                         // the vendor's code; 0 when the devices are listed
  char error_name[SIMILE_PLUGIN_TEXT_BYTES];  // "cudaErrorNoDevice"; empty without an error
  char error_text[SIMILE_PLUGIN_TEXT_BYTES];  // the vendor's message
  char driver[SIMILE_PLUGIN_TEXT_BYTES];      // what the driver supports: "CUDA 12.8"
  char runtime[SIMILE_PLUGIN_TEXT_BYTES];     // what the plug-in was built with: "CUDA 12.8"
  std::uint32_t device_count;                 // filled entries of devices
  SimileDevice devices[SIMILE_PLUGIN_DEVICES_MAX];
};

struct SimilePlugin {
  std::uint32_t interface_version;  // SIMILE_PLUGIN_INTERFACE_VERSION of its build; always first
  const char* build_id;             // kBuildId of its build; always second
  // Lists the devices without opening one. Fills the whole struct; never throws.
  void (*probe)(SimileDeviceProbe* probe);
  // Opens a device and allocates its workspace. Never throws. Backend::limitation names a missing
  // library that is not required. Errors, as a receipt shows them:
  //   kFailedPrecondition      no code for the device; with the code of kDeviceErrorPayload
  //   kResourceExhausted       the smallest workspace does not fit; with the bytes needed and free
  //   kUnavailable, kInternal  a device call failed; with kUnavailable the device is lost
  void (*open)(const simile::backend::GpuOptions* options,
               absl::StatusOr<std::unique_ptr<simile::Backend>>* backend);
  const char* toolkit;  // built the plug-in, as SimileDeviceProbe::runtime; known without a driver
};

// The one symbol a plug-in exports; AcceleratorKind::entry_symbol is its name. The table lives
// until the process ends, because plug-ins are never unloaded.
using SimilePluginEntry = const SimilePlugin* (*)();

}  // extern "C"
