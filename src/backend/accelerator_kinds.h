#pragma once

#include <array>
#include <span>
#include <string_view>

namespace simile::backend {

// One build of the engine, for a range of drivers and cards.
struct PluginFile {
  const char* name;           // without folders
  const char* toolkit;        // built the file; the begin of SimileDeviceProbe::runtime
  const char* oldest_driver;  // runs the file
};

// What the server must know about one kind of accelerator before its plug-in is loaded. Everything
// else of a vendor lives in the plug-in's own folder.
struct AcceleratorKind {
  const char* driver_name;                   // "NVIDIA driver", for messages
  const char* a_driver;                      // driver_name with its article
  const char* driver_library;                // as for dlopen
  std::span<const PluginFile> plugin_files;  // best first
  const char* entry_symbol;                  // of type SimilePluginEntry (accelerator_plugin.h)
  // The vendor's codes of a plug-in that is too new for the driver, or has no code for the card.
  int driver_too_old;
  std::array<int, 3> no_code;
};

// In the order in which the registry tries them.
inline std::span<const AcceleratorKind> AcceleratorKinds() {
  static constexpr PluginFile kCudaPlugins[] = {
      {"libsimile_cuda.so", "CUDA 13.", "580"},     // cards from Turing (T4) on
      {"libsimile_cuda12.so", "CUDA 12.", "525"}};  // cards from Pascal (P4) on
  static constexpr AcceleratorKind kKinds[] = {
      {"NVIDIA driver",
       "an NVIDIA driver",
       "libcuda.so.1",
       kCudaPlugins,
       "simile_cuda_plugin",
       35,  // cudaErrorInsufficientDriver
       // cudaErrorInvalidDeviceFunction, cudaErrorNoKernelImageForDevice,
       // cudaErrorUnsupportedPtxVersion
       {98, 209, 222}},
  };
  return kKinds;
}

// The oldest driver that runs programs of this toolkit: "580" for "CUDA 13.0"; empty for others.
inline std::string_view OldestDriverFor(const AcceleratorKind& kind, std::string_view toolkit) {
  for (const PluginFile& file : kind.plugin_files) {
    if (toolkit.starts_with(file.toolkit)) return file.oldest_driver;
  }
  return {};
}

// What the compute capability of a card decides: 75 stands for sm_75. The GPU plug-in's table of
// kernels and `simile plan` both read it, and docs/cards.md prints it.

// The lowest capability with machine code in any plug-in, and in the plug-in of the newest toolkit
// (the build's lists of architectures).
inline constexpr int kGpuCodeMin = 61;
inline constexpr int kNewestPluginCodeMin = 75;
// From this capability on, matrix products of fp16 run on tensor cores.
inline constexpr int kTensorProductsMin = 70;
// From this capability on, the fused scans use tensor cores, too (kernels/device.h); below, they
// multiply in fp32.
inline constexpr int kTensorScanMin = 75;
// From this capability on, copies run in the background, and there is a scan of int8 rows.
inline constexpr int kRingScanMin = 80;
inline constexpr int kInt8ScanMin = 80;

}  // namespace simile::backend
