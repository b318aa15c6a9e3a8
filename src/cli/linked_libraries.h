#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/terminal.h"

namespace simile::cli {

// Who says a library's version: the library itself, now; the name of the file that is loaded; or
// only the headers that this program was compiled with.
enum class VersionSource : std::uint8_t { kLibrary, kFileName, kHeaders };

struct LinkedLibrary {
  std::string name;     // "gRPC"
  std::string version;  // "1.51.1"
  VersionSource source = VersionSource::kHeaders;
  std::string built_with;  // version of the headers; empty for what only other libraries use
  std::vector<std::string> files;  // that are loaded; none for what is headers alone
};

// Everything that this process has loaded, by library, and the libraries that are headers alone.
std::vector<LinkedLibrary> LinkedLibraries();

// The GPU plug-ins beside this program. None is opened on a device, and no driver is asked.
struct PluginVersion {
  std::string file;        // "libsimile_cuda.so"
  std::string built_with;  // "CUDA 13.0"; empty when it was refused
  std::string refusal;     // why this program does not use it
};
std::vector<PluginVersion> PluginVersions();

std::string LinkedLibrariesTable(const std::vector<LinkedLibrary>& libraries,
                                 const std::vector<PluginVersion>& plugins,
                                 const Terminal& terminal);
// [{"name", "version", "version_from", "built_with", "files"}]
nlohmann::ordered_json LinkedLibrariesJson(const std::vector<LinkedLibrary>& libraries);
// [{"file", "built_with", "refusal"}]
nlohmann::ordered_json PluginVersionsJson(const std::vector<PluginVersion>& plugins);

}  // namespace simile::cli
