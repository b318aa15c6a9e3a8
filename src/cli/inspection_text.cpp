#include "cli/inspection_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/display_text.h"
#include "cli/json_line.h"
#include "cli/table.h"

namespace simile::cli {

std::string InspectionText(const std::string& path, const data::Inspection& inspection,
                           const Terminal& terminal) {
  Table facts({{}, {}});
  for (const auto& [label, value] : inspection.facts) facts.AddRow({label, value});
  const std::string title =
      inspection.kind.empty() ? path : fmt::format("{}: {}", path, inspection.kind);
  return fmt::format("{}\n{}{}", Bold(Printable(title), terminal), facts.Render(terminal, 2),
                     inspection.verdict.ok() ? "would load\n" : "");
}

std::string InspectionJson(const std::string& path, const data::Inspection& inspection) {
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  for (const auto& [label, value] : inspection.facts) facts[label] = value;
  nlohmann::ordered_json json = {{"path", path},
                                 {"kind", inspection.kind},
                                 {"loads", inspection.verdict.ok()},
                                 {"facts", std::move(facts)},
                                 {"error", nullptr}};
  if (!inspection.verdict.ok()) json["error"] = std::string(inspection.verdict.message());
  return JsonLine(json);
}

}  // namespace simile::cli
