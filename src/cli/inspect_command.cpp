#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/display_text.h"
#include "cli/exit_code.h"
#include "cli/json_line.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "data/inspect.h"

namespace simile::cli {
namespace {

struct InspectFlags {
  std::optional<std::string> path;
  bool json = false;
};

// One fact per line, then `would load` if it would. RunInspect prints the error.
std::string InspectionText(const std::string& path, const data::Inspection& inspection,
                           const Terminal& terminal) {
  Table facts({{}, {}});
  for (const auto& [label, value] : inspection.facts) facts.AddRow({label, value});
  const std::string title =
      inspection.kind.empty() ? path : fmt::format("{}: {}", path, inspection.kind);
  return fmt::format("{}\n{}{}", Bold(Printable(title), terminal), facts.Render(terminal, 2),
                     inspection.status.ok() ? "would load\n" : "");
}

// {"path", "kind", "loads", "facts": {label: value}, "error"} on one line, ended by '\n'. error is
// null when it loads.
std::string InspectionJson(const std::string& path, const data::Inspection& inspection) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [label, value] : inspection.facts) facts[label] = value;
  nlohmann::ordered_json json = {{"path", path},
                                 {"kind", inspection.kind},
                                 {"loads", inspection.status.ok()},
                                 {"facts", std::move(facts)},
                                 {"error", nullptr}};
  if (!inspection.status.ok()) json["error"] = std::string(inspection.status.message());
  return JsonLine(json);
}

// Prints the facts to standard output, and to standard error why the file would not load.
int RunInspect(const InspectFlags& flags) {
  const absl::StatusOr<data::Inspection> inspection = data::InspectFile(*flags.path, Limits{});
  if (!inspection.ok()) return Fail(inspection.status());
  fmt::print("{}", flags.json ? InspectionJson(*flags.path, *inspection)
                              : InspectionText(*flags.path, *inspection, StandardOutput()));
  if (!inspection->status.ok()) return flags.json ? kFailed : Fail(inspection->status);
  std::error_code error;
  if (!flags.json && std::filesystem::is_directory(*flags.path, error)) {
    SuggestNext(fmt::format("simile serve --collection NAME={}", *flags.path));
  }
  return kSucceeded;
}

}  // namespace

void AddInspectCommand(CommandLine& line) {
  auto flags = std::make_shared<InspectFlags>();
  Command command =
      line.Add("inspect", "Show what a file or folder holds and whether it would load");
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
