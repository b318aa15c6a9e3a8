#include "cli/config_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/config/config_check.h"
#include "app/config/foreign_variables.h"
#include "app/config/settings.h"
#include "backend/cpu/int8_tuning.h"
#include "base/message_text.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/output_text.h"
#include "cli/settings_flags.h"
#include "cli/table.h"

namespace simile::cli {
namespace {

using Json = nlohmann::ordered_json;
using app::Setting;
using app::SettingKind;
using backend::cpu::Int8Tuning;
using backend::cpu::TuningValue;
using backend::cpu::TuningValues;

std::string Joined(const std::vector<std::string>& texts) {
  const std::string joined = fmt::format("{}", fmt::join(texts, ", "));
  return joined.empty() ? "-" : joined;
}

std::string WithUnit(const std::string& value, const std::string& unit) {
  return unit.empty() || value == "never" ? value : fmt::format("{} {}", value, unit);
}

// An origin without its kind, which is visible in the name's form: "--port", "SIMILE_SERVER_PORT",
// "simile.json".
std::string SourceName(const std::string& origin) {
  for (const std::string_view kind : {"flag ", "environment ", "file "}) {
    if (origin.starts_with(kind)) return origin.substr(kind.size());
  }
  return origin;
}

Json SettingValueJson(const Setting& setting, const app::Config& config) {
  const std::vector<std::string> texts = setting.get(config);
  switch (setting.kind) {
    case SettingKind::kWholeNumber:
      return std::stoull(texts.front());
    case SettingKind::kNumber:
      return std::stod(texts.front());
    case SettingKind::kSwitch:
      return texts.front() == "true";
    case SettingKind::kCollections: {
      Json collections = Json::object();
      for (const app::CollectionConfig& collection : config.collections) {
        collections[collection.name] = collection.folder.string();
      }
      return collections;
    }
    default:
      return texts.front();
  }
}

Json TuningJson(const app::TuningInForce& tuning) {
  Json list = Json::array();
  list.push_back({{"name", "threads"},
                  {"value", tuning.threads},
                  {"unit", "threads"},
                  {"default", base::UsableCpuCount()},
                  {"origin", tuning.threads_origin},
                  {"help",
                   "Threads that search; `simile tune` may choose them where "
                   "backend.threads is 0."}});
  const Int8Tuning defaults;
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TuningValue& value = TuningValues()[i];
    list.push_back({{"name", value.name},
                    {"value", tuning.tuning.*value.value},
                    {"unit", value.unit},
                    {"default", defaults.*value.value},
                    {"origin", tuning.origins[i]},
                    {"help", value.help}});
  }
  return list;
}

Json FamiliarJson() {
  Json list = Json::array();
  for (const app::FamiliarName& familiar : app::FamiliarNames()) {
    list.push_back({{"name", familiar.name}, {"key", familiar.key}, {"help", familiar.help}});
  }
  return list;
}

Json ForeignJson(const app::ForeignVariable& row, std::string_view name, Json value) {
  return {{"name", name},
          {"value", std::move(value)},
          {"reader", app::ReaderName(row.reader)},
          {"help", row.effect}};
}

// All known variables. A family is followed by those of its variables that are set.
Json ForeignJson(const app::ConfigReading& reading) {
  Json list = Json::array();
  for (const app::ForeignVariable& row : app::ForeignVariables()) {
    Json own;
    std::vector<Json> members;
    for (const app::ForeignValue& found : reading.foreign_values) {
      if (found.row != &row) continue;
      if (row.is_family()) {
        members.push_back(ForeignJson(row, found.name, found.display_value()));
      } else {
        own = found.value;
      }
    }
    list.push_back(ForeignJson(row, row.name, std::move(own)));
    for (Json& member : members) list.push_back(std::move(member));
  }
  return list;
}

struct ConfigFlags {
  SettingsFlags settings;
  bool print = false;
  bool json = false;
};

void PrintValid(const app::ConfigReading& reading) {
  const auto changed = std::ranges::count_if(
      reading.origins, [](const std::string& origin) { return !origin.starts_with("default"); });
  fmt::print("the configuration is valid; {} of {} differ from their defaults\n", changed,
             base::Counted(reading.origins.size(), "setting"));
  SuggestNext("simile config --print");
}

// Prints the problems to standard error. Returns kFailed if there are any.
int FailOn(const std::vector<app::ConfigProblem>& problems) {
  for (const app::ConfigProblem& problem : problems) {
    Fail(absl::FailedPreconditionError(app::ProblemText(problem)));
  }
  return problems.empty() ? kSucceeded : kFailed;
}

int RunConfig(const ConfigFlags& flags) {
  const absl::StatusOr<app::ConfigReading> reading = flags.settings.Read();
  if (!reading.ok()) {
    Fail(reading.status(), flags.json);
    return kWrongUsage;
  }
  const std::vector<app::ConfigProblem> problems = app::FolderProblems(*reading);
  if (flags.json) {
    fmt::print("{}", SettingsJson(*reading, app::KnownTuning(reading->config), problems));
    return FailOn(problems);
  }
  if (flags.print) {
    fmt::print("{}\n{}{}", SettingsTable(*reading, StandardOutput()),
               TuningTable(app::KnownTuning(reading->config), StandardOutput()),
               VariableTable(*reading, StandardOutput()));
    std::fflush(stdout);  // so that the problems follow it
    return FailOn(problems);
  }
  if (const absl::Status served = app::CheckSomethingToServe(reading->config); !served.ok()) {
    Fail(served);
    return kWrongUsage;
  }
  if (problems.empty()) PrintValid(*reading);
  return FailOn(problems);
}

}  // namespace

std::string SettingsTable(const app::ConfigReading& reading, const Terminal& terminal) {
  Table table({{"setting"},
               {"value", Align::kLeft, true, false, true},
               {"from", Align::kLeft, true, false, true}});
  const app::Config defaults;
  for (std::size_t i = 0; i < app::Settings().size(); ++i) {
    const Setting& setting = app::Settings()[i];
    const std::string value = Joined(setting.get(reading.config));
    const std::string normal = Joined(setting.get(defaults));
    std::string text = WithUnit(value, setting.unit);
    if (value != normal && normal != "-") text += fmt::format(" (default {})", normal);
    table.AddRow({setting.key, text, SourceName(reading.origins[i])});
  }
  return table.Render(terminal, 0);
}

std::string TuningTable(const app::TuningInForce& tuning, const Terminal& terminal) {
  Table table({{"tuning"}, {"value"}, {"from", Align::kLeft, true, false, true}});
  table.AddRow({"threads", std::to_string(tuning.threads), tuning.threads_origin});
  for (std::size_t i = 0; i < TuningValues().size(); ++i) {
    const TuningValue& value = TuningValues()[i];
    table.AddRow({value.name,
                  WithUnit(app::TuningText(value, tuning.tuning.*value.value), value.unit),
                  tuning.origins[i]});
  }
  std::string text = table.Render(terminal, 0);
  if (!tuning.cache.ok()) text += std::string(tuning.cache.message()) + "\n";
  return text;
}

std::string VariableTable(const app::ConfigReading& reading, const Terminal& terminal) {
  Table table({{"variable"},
               {"value", Align::kLeft, true, false, true},
               {"read by"},
               {"what", Align::kLeft, true, false, true}});
  for (const app::VariableEffect& each : app::DescribeEffects(reading)) {
    table.AddRow({each.name, each.value, each.reader.empty() ? "nobody: ignored" : each.reader,
                  each.effect});
  }
  return table.empty() ? "" : fmt::format("\n{}", table.Render(terminal, 0));
}

std::string SettingsJson(const app::ConfigReading& reading, const app::TuningInForce& tuning,
                         const std::vector<app::ConfigProblem>& problems) {
  Json list = Json::array();
  const app::Config defaults;
  for (std::size_t i = 0; i < app::Settings().size(); ++i) {
    const Setting& setting = app::Settings()[i];
    list.push_back({{"key", setting.key},
                    {"value", SettingValueJson(setting, reading.config)},
                    {"unit", setting.unit},
                    {"range", setting.range},
                    {"default", SettingValueJson(setting, defaults)},
                    {"origin", reading.origins[i]},
                    {"environment", setting.Environment()},
                    {"flag", setting.flag},
                    {"help", setting.help}});
  }
  Json found = Json::array();
  for (const app::ConfigProblem& problem : problems) {
    found.push_back(
        {{"key", problem.key}, {"origin", problem.origin}, {"message", problem.message}});
  }
  return JsonLine({{"settings", std::move(list)},
                   {"familiar_names", FamiliarJson()},
                   {"foreign_variables", ForeignJson(reading)},
                   {"tuning", TuningJson(tuning)},
                   {"problems", std::move(found)}});
}

void AddConfigCommand(CommandLine& line) {
  auto flags = std::make_shared<ConfigFlags>();
  Command command =
      line.Add("config", "Check and show the settings and folders that `serve` would use");
  command
      .Switch("--print", flags->print,
              "Print every setting with its value and where it comes from; and the CPU's tuning")
      .Switch("--json", flags->json, "Print all of it as JSON for programs, with units and ranges");
  flags->settings.AddTo(command);
  std::vector<std::string> familiar;
  for (const app::FamiliarName& each : app::FamiliarNames()) {
    familiar.push_back(each.key == "backend.preference"
                           ? fmt::format("{} ({})", each.name, each.help)
                           : fmt::format("{} ({})", each.name, each.key));
  }
  command
      .Footer(fmt::format(
          "Settings come from a JSON file, then SIMILE_* variables, then flags; the last one "
          "wins.\n"
          "server.port is SIMILE_SERVER_PORT, and {{\"server\": {{\"port\": 50051}}}} in a file.\n"
          "Names from other servers also work: {}. --print names the variables that are set and "
          "have no effect.\n"
          "Reads only the headers of a collection's folder; `simile inspect FOLDER` reads "
          "everything.\n"
          "Exit codes: 0 valid, 1 a folder is missing or no collection, 64 a wrong setting, or "
          "nothing to serve.",
          fmt::join(familiar, ", ")))
      .Run([flags] { return RunConfig(*flags); });
}

}  // namespace simile::cli
