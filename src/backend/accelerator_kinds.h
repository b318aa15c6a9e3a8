#pragma once

#include <span>

namespace simile::backend {

// What the server must know about one kind of accelerator before its plug-in is loaded. Everything
// else of a vendor lives in the plug-in's own folder.
struct AcceleratorKind {
  const char* driver_name;     // "NVIDIA driver", for messages
  const char* a_driver;        // the same with its article
  const char* driver_library;  // as for dlopen
  const char* plugin_file;     // without folders
  const char* entry_symbol;    // of type SimilePluginEntry (accelerator_plugin.h)
};

// In the order in which the registry tries them.
inline std::span<const AcceleratorKind> AcceleratorKinds() {
  static constexpr AcceleratorKind kKinds[] = {
      {"NVIDIA driver", "an NVIDIA driver", "libcuda.so.1", "libsimile_cuda.so",
       "simile_cuda_plugin"},
  };
  return kKinds;
}

}  // namespace simile::backend
