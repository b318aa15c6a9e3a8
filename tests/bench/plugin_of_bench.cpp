#include "bench/plugin_of_bench.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include <absl/strings/match.h>
#include <fmt/format.h>

#include "backend/accelerator_kinds.h"
#include "backend/gpu_search.h"

namespace simile::bench {
namespace {

constexpr char kNoCard[] = "no GPU to use: ";

}  // namespace

std::string PluginBeside() {
  std::error_code ignored;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto files = backend::AcceleratorKinds().front().plugin_files;
  const auto found = std::ranges::find_if(files, [&](const backend::PluginFile& file) {
    return std::filesystem::exists(folder / file.name, ignored);
  });
  return folder / (found != files.end() ? *found : files.front()).name;
}

absl::StatusOr<const SimilePlugin*> LoadPluginForDevice(const std::string& path) {
  const auto plugin =
      backend::LoadGpuPlugin(path, backend::AcceleratorKinds().front().entry_symbol);
  if (!plugin.ok()) return plugin.status();
  SimileDeviceProbe probe;
  (*plugin)->probe(&probe);
  if (probe.error == 0) return plugin;
  return absl::UnavailableError(fmt::format(
      "{}{} ({}); this needs a machine with an NVIDIA card and a driver for {}", kNoCard,
      std::begin(probe.error_text), std::begin(probe.error_name), std::begin(probe.runtime)));
}

bool IsNoCard(const absl::Status& status) { return absl::StartsWith(status.message(), kNoCard); }

}  // namespace simile::bench
