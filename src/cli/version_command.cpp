#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_line.h"
#include "cli/linked_libraries.h"
#include "cli/terminal.h"
#include "observe/build_info.h"

namespace simile::cli {
namespace {

struct VersionFlags {
  bool verbose = false;
  bool json = false;
};

std::string VersionJson(bool verbose) {
  const observe::BuildInfo build = observe::GetBuildInfo();
  nlohmann::ordered_json document = {{"version", build.version},
                                     {"build", build.build},
                                     {"commit", build.commit},
                                     {"compiler", build.compiler},
                                     {"build_type", build.build_type}};
  if (verbose) {
    document["libraries"] = LinkedLibrariesJson(LinkedLibraries());
    document["gpu_plugins"] = PluginVersionsJson(PluginVersions());
  }
  return JsonLine(document);
}

int RunVersion(const std::string& version, const VersionFlags& flags) {
  if (flags.json) {
    fmt::print("{}", VersionJson(flags.verbose));
    return kSucceeded;
  }
  fmt::print("{}\n", version);
  if (flags.verbose) {
    const observe::BuildInfo build = observe::GetBuildInfo();
    // Before the plug-ins are opened, which then are loaded, too.
    const std::vector<LinkedLibrary> libraries = LinkedLibraries();
    fmt::print("  {}, {}\n{}", build.compiler, build.build_type,
               LinkedLibrariesTable(libraries, PluginVersions(), StandardOutput()));
  }
  return kSucceeded;
}

}  // namespace

void AddVersionCommand(CommandLine& line) {
  auto flags = std::make_shared<VersionFlags>();
  line.Add("version", "Print the version")
      .AboutProgram()
      .Switch("--verbose", flags->verbose, "List every library that is linked, as it is loaded now")
      .Switch("--json", flags->json, "Print JSON for programs")
      .Footer("simile version --verbose\n`simile --version` means the same, with the same flags.")
      .Run([&program = line.program(), flags] { return RunVersion(program.version, *flags); });
}

}  // namespace simile::cli
