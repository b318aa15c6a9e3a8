#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/inspection_text.h"
#include "data/inspect.h"

namespace simile::cli {
namespace {

struct InspectFlags {
  std::optional<std::string> path;
  bool json = false;
};

// The facts go to standard output whatever the verdict; what is wrong goes where errors go.
int RunInspect(const InspectFlags& flags) {
  const absl::StatusOr<data::Inspection> inspection = data::InspectFile(*flags.path, Limits{});
  if (!inspection.ok()) return Fail(inspection.status());
  fmt::print("{}", flags.json ? InspectionJson(*flags.path, *inspection)
                              : InspectionText(*flags.path, *inspection, StandardOutput()));
  if (!inspection->verdict.ok()) return flags.json ? kFailed : Fail(inspection->verdict);
  std::error_code error;
  if (!flags.json && std::filesystem::is_directory(*flags.path, error)) {
    SuggestNext(fmt::format("simile serve --collection NAME={}", *flags.path));
  }
  return kSucceeded;
}

}  // namespace

void AddInspectCommand(CommandLine& line) {
  auto flags = std::make_shared<InspectFlags>();
  Command command = line.Add("inspect", "Say what is in a file or folder, and whether it loads");
  command
      .File("PATH", flags->path, "",
            "A .npy, .safetensors, .jsonl or .json file, or a collection's folder")
      .Required()
      .Switch("--json", flags->json, "Print JSON for programs");
  command.Footer("Needs no server. Exit codes: 0 it would load, 1 it would not.").Run([flags] {
    return RunInspect(*flags);
  });
}

}  // namespace simile::cli
