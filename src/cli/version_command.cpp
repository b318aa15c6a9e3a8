#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "backend/gpu_search.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "observe/build_info.h"

namespace simile::cli {
namespace {

namespace fs = std::filesystem;

struct VersionFlags {
  bool verbose = false;
  bool json = false;
};

// A GPU plug-in beside this program. Read without opening a device or asking a driver.
struct PluginVersion {
  std::string file;        // "libsimile_cuda.so"
  std::string built_with;  // "CUDA 13.0"; empty when it was refused
  std::string refusal;     // why this program does not use it
};

std::vector<PluginVersion> FindPlugins() {
  std::vector<PluginVersion> found;
  for (const backend::GpuSearch& search : backend::DefaultGpuSearches()) {
    for (const std::string& path : search.plugin_paths) {
      std::error_code error;
      if (!fs::exists(path, error)) continue;
      PluginVersion& version = found.emplace_back();
      version.file = fs::path(path).filename().string();
      const auto plugin = backend::LoadGpuPlugin(path, search.kind.entry_symbol);
      if (plugin.ok()) {
        version.built_with = (*plugin)->toolkit;
      } else {
        version.refusal = std::string(plugin.status().message());
      }
    }
  }
  return found;
}

void PrintJson(const observe::BuildInfo& build, bool verbose) {
  nlohmann::ordered_json document = {{"version", build.version},
                                     {"build", build.build},
                                     {"commit", build.commit},
                                     {"compiler", build.compiler},
                                     {"build_type", build.build_type}};
  if (verbose) {
    auto& libraries = document["libraries"] = nlohmann::ordered_json::array();
    for (const observe::UsedLibrary& library : build.libraries) {
      libraries.push_back({{"name", library.name}, {"version", library.version}});
    }
    auto& plugins = document["gpu_plugins"] = nlohmann::ordered_json::array();
    for (const PluginVersion& plugin : FindPlugins()) {
      plugins.push_back(
          {{"file", plugin.file}, {"built_with", plugin.built_with}, {"refusal", plugin.refusal}});
    }
  }
  fmt::print("{}", JsonLine(document));
}

void PrintDetails(const observe::BuildInfo& build) {
  fmt::print("  {}, {}\n", build.compiler, build.build_type);
  Table table({{"library"}, {"built with"}});
  for (const observe::UsedLibrary& library : build.libraries) {
    table.AddRow({std::string(library.name), std::string(library.version)});
  }
  fmt::print("{}", table.Render(StandardOutput(), 2));
  for (const PluginVersion& plugin : FindPlugins()) {
    fmt::print(
        "  {}: {}\n", plugin.file,
        plugin.refusal.empty() ? "built with " + plugin.built_with : "not used: " + plugin.refusal);
  }
}

int RunVersion(const std::string& version, const VersionFlags& flags) {
  const observe::BuildInfo build = observe::GetBuildInfo();
  if (flags.json) {
    PrintJson(build, flags.verbose);
    return kSucceeded;
  }
  fmt::print("{}\n", version);
  if (flags.verbose) PrintDetails(build);
  return kSucceeded;
}

}  // namespace

void AddVersionCommand(CommandLine& line) {
  auto flags = std::make_shared<VersionFlags>();
  line.Add("version", "Print the version")
      .AboutProgram()
      .Switch("--verbose", flags->verbose, "List the libraries and GPU plug-ins, too")
      .Switch("--json", flags->json, "Print JSON for programs")
      .Footer("simile version --verbose\n`simile --version` means the same, with the same flags.")
      .Run([&program = line.program(), flags] { return RunVersion(program.version, *flags); });
}

}  // namespace simile::cli
