#pragma once

#include <array>
#include <span>
#include <string_view>

namespace simile::backend {

// What the server must know about one kind of accelerator before its plug-in is loaded. Everything
// else of a vendor lives in the plug-in's own folder.
struct AcceleratorKind {
  const char* driver_name;     // "NVIDIA driver", for messages
  const char* a_driver;        // the same with its article
  const char* driver_library;  // as for dlopen
  // Without folders, best first. Each is the same engine, built for other drivers and cards.
  std::span<const char* const> plugin_files;
  const char* entry_symbol;  // of type SimilePluginEntry (accelerator_plugin.h)
  // The vendor's codes of a plug-in that is too new for the driver, or has no code for the card.
  int driver_too_old;
  std::array<int, 2> no_code;
};

// In the order in which the registry tries them.
inline std::span<const AcceleratorKind> AcceleratorKinds() {
  // The first for drivers from 580 on and cards from Turing (T4) on, the second for drivers from
  // 525 on and cards from Pascal (P4) on.
  static constexpr const char* kCudaPlugins[] = {"libsimile_cuda.so", "libsimile_cuda12.so"};
  static constexpr AcceleratorKind kKinds[] = {
      {"NVIDIA driver",
       "an NVIDIA driver",
       "libcuda.so.1",
       kCudaPlugins,
       "simile_cuda_plugin",
       35,           // cudaErrorInsufficientDriver
       {209, 222}},  // cudaErrorNoKernelImageForDevice, cudaErrorUnsupportedPtxVersion
  };
  return kKinds;
}

// The oldest driver that runs programs of this toolkit: "580" for "CUDA 13.0"; empty for others.
inline std::string_view OldestDriverFor(std::string_view toolkit) {
  if (toolkit.starts_with("CUDA 13.")) return "580";
  if (toolkit.starts_with("CUDA 12.")) return "525";
  return {};
}

}  // namespace simile::backend
